"""The last thing that the server of ``forks`` imports: what its processes would else each do again is done here."""

import gc

from artemis_py.config.xml.document import fast_schema

fast_schema()
gc.collect()
gc.freeze()  # else the first collection of each process would copy the memory that it shares with the others
