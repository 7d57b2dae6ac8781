module artemis-py-go-stomp-check

go 1.22

require github.com/go-stomp/stomp/v3 v3.1.3
