"""Key and trust stores as an Artemis user has them: PEM, PEMCFG, PKCS12 and JKS, told apart by their content."""
