package example

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/go-stomp/stomp/v3"
)

func TestAnOrderIsTakenAndAcknowledged(t *testing.T) {
	broker := startBroker(t, "--queue", "orders")
	client, err := stomp.Dial("tcp", fmt.Sprintf("%s:%d", broker.Host, broker.Port))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Send("orders", "text/plain", []byte("two coffees"), stomp.SendOpt.Receipt); err != nil {
		t.Fatal(err)
	}
	subscription, err := client.Subscribe("orders", stomp.AckClientIndividual)
	if err != nil {
		t.Fatal(err)
	}
	message := <-subscription.C
	if message.Err != nil || string(message.Body) != "two coffees" {
		t.Fatalf("received %q, %v", message.Body, message.Err)
	}
	if err := client.Ack(message); err != nil {
		t.Fatal(err)
	}
	if err := subscription.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	if err := client.Disconnect(); err != nil { // waits for a RECEIPT: the broker has the ACK
		t.Fatal(err)
	}
	if count := depth(t, broker, "orders"); count != 0 {
		t.Errorf("%d orders are left", count)
	}
}

// depth is how many messages a queue has, as the broker says.
func depth(t *testing.T, broker testBroker, queue string) int {
	t.Helper()
	answer, err := http.Get(broker.HTTPURL + "api/queues/" + queue)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var found struct {
		MessageCount int `json:"messageCount"`
	}
	found.MessageCount = -1
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		t.Fatal(err)
	}
	return found.MessageCount
}
