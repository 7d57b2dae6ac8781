# What the start script reads.
ARTEMIS_HOME='/opt/artemis'
ARTEMIS_INSTANCE='/srv/shop'
ARTEMIS_DATA_DIR='/srv/shop/data'
ARTEMIS_CLUSTER_PROPS="-Dshop.stomp.port=0"
if [ -z "$JAVA_ARGS" ]; then
    JAVA_ARGS="-XX:+UseG1GC -Xms512M -Dweb.port=0 -Dpartners.file=partners.properties "
fi
# JAVA_ARGS="$JAVA_ARGS -Dweb.port=8161"
JAVA_ARGS="$JAVA_ARGS -Dshop.guest=visitor"
