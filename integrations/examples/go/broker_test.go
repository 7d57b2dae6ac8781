package example

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// testBroker is a broker in memory and on free ports: artemis-py test-broker, which ends with the test.
type testBroker struct {
	Host    string `json:"host"`
	Port    int    `json:"port"`
	HTTPURL string `json:"http_url"`
}

// startBroker starts one. The command is in the environment variable ARTEMIS_PY, or else artemis-py of the PATH.
func startBroker(t *testing.T, arguments ...string) testBroker {
	t.Helper()
	words := strings.Fields(os.Getenv("ARTEMIS_PY"))
	if len(words) == 0 {
		words = []string{"artemis-py"}
	}
	words = append(append(words, "test-broker"), arguments...)
	command := exec.Command(words[0], words[1:]...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close() // ends the broker
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
	var broker testBroker
	if err := json.NewDecoder(stdout).Decode(&broker); err != nil {
		t.Fatalf("the broker has not started: %v", err)
	}
	return broker
}
