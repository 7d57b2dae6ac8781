// go-stomp against a broker: client PORT VERSION PLACE
// Prints "ok CHECK" or "failed CHECK: why" for each check; all run side by side, each on addresses below PLACE.
package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"
)

const wait = 15 * time.Second

var (
	port    = os.Args[1]
	version = stomp.Version(os.Args[2])
	place   = os.Args[3]
)

// The library writes the escapes of 1.2 in every version; of these 1.1 does not know that of the carriage return.
var awkward = map[stomp.Version]string{
	stomp.V10: "Ж:東京🎈\nline two \\ back\\n",
	stomp.V11: "Ж:東京🎈\nline two \\ back\\n",
	stomp.V12: "Ж:東京🎈\r\nline two \\ back\\n",
}

// A session of one check. Its methods panic with what went wrong.
type session struct {
	*stomp.Conn
	socket *countingSocket
}

// A socket that counts the line feeds that arrive alone: heart-beats.
type countingSocket struct {
	net.Conn
	beats atomic.Int32
}

func (s *countingSocket) Read(into []byte) (int, error) {
	count, err := s.Conn.Read(into)
	if count == 1 && into[0] == '\n' {
		s.beats.Add(1)
	}
	return count, err
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(seen, expected any) {
	if seen != expected {
		panic(fmt.Sprintf("%q instead of %q", seen, expected))
	}
}

func eventually(what string, isSo func() bool) {
	for until := time.Now().Add(wait); !isSo(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			panic(what + ": not so")
		}
	}
}

func open(beats time.Duration, options ...func(*stomp.Conn) error) *session {
	tcp, err := net.Dial("tcp", "127.0.0.1:"+port)
	must(err)
	socket := &countingSocket{Conn: tcp}
	options = append(options,
		stomp.ConnOpt.AcceptVersion(version),
		stomp.ConnOpt.Host("broker"),
		stomp.ConnOpt.HeartBeat(beats, beats),
		stomp.ConnOpt.HeartBeatError(250*time.Millisecond),
		stomp.ConnOpt.Logger(silence{}),
	)
	conn, err := stomp.Connect(socket, options...)
	must(err)
	return &session{conn, socket}
}

// The library reports on standard error what the checks look at themselves.
type silence struct{}

func (silence) Debugf(string, ...interface{})   {}
func (silence) Infof(string, ...interface{})    {}
func (silence) Warningf(string, ...interface{}) {}
func (silence) Errorf(string, ...interface{})   {}
func (silence) Debug(string)                    {}
func (silence) Info(string)                     {}
func (silence) Warning(string)                  {}
func (silence) Error(string)                    {}

func (s *session) send(destination, body string, options ...func(*frame.Frame) error) {
	must(s.Send(destination, "", []byte(body), append(options, stomp.SendOpt.Receipt)...))
}

func (s *session) subscribe(destination string, ack stomp.AckMode) *stomp.Subscription {
	subscription, err := s.Subscribe(destination, ack, stomp.SubscribeOpt.Header("consumer-window-size", "-1"))
	must(err)
	return subscription
}

func (s *session) leave() {
	must(s.Disconnect())
}

func next(subscription *stomp.Subscription) *stomp.Message {
	select {
	case message := <-subscription.C:
		if message == nil {
			panic("the subscription ended")
		}
		must(message.Err)
		return message
	case <-time.After(wait):
		panic("no message came")
	}
}

func (s *session) nothingWaits(subscription *stomp.Subscription) {
	s.send("/topic/"+place+".nobody", "x")
	select {
	case message := <-subscription.C:
		panic(fmt.Sprintf("unexpected message %q", message.Body))
	default:
	}
}

func queue(name string) string {
	return "/queue/" + place + "." + name
}

func filled(name string, bodies ...string) (*session, string) {
	s := open(0)
	for _, body := range bodies {
		s.send(queue(name), body)
	}
	return s, queue(name)
}

// What is left on a queue is exactly this.
func left(destination string, bodies ...string) {
	s := open(0)
	subscription := s.subscribe(destination, stomp.AckClientIndividual)
	for _, body := range bodies {
		message := next(subscription)
		equal(string(message.Body), body)
		must(s.Ack(message))
	}
	s.nothingWaits(subscription)
	s.leave()
}

func connects() {
	server := ""
	s := open(0, stomp.ConnOpt.ResponseHeaders(func(header *frame.Header) { server = header.Get("server") }))
	equal(s.Version(), version)
	equal(strings.HasPrefix(server, "artemis_py/"), true)
	s.leave()
}

func sendsAndReceivesInOrder() {
	producer, destination := filled("order")
	consumer := open(0)
	subscription := consumer.subscribe(destination, stomp.AckAuto)
	go func() {
		for n := range 50 {
			number := fmt.Sprint(n)
			producer.send(destination, "message "+number, stomp.SendOpt.Header("n", number))
		}
	}()
	for n := range 50 {
		message := next(subscription)
		equal(string(message.Body), fmt.Sprint("message ", n))
		equal(message.Header.Get("n"), fmt.Sprint(n))
	}
	producer.leave()
	consumer.leave()
}

func acknowledgesAllBefore() {
	s, destination := filled("client", "a", "b", "c")
	subscription := s.subscribe(destination, stomp.AckClient)
	next(subscription)
	second := next(subscription)
	next(subscription)
	must(s.Ack(second))
	s.leave()
	left(destination, "c")
}

func acknowledgesOne() {
	s, destination := filled("individual", "a", "b", "c")
	subscription := s.subscribe(destination, stomp.AckClientIndividual)
	next(subscription)
	second := next(subscription)
	next(subscription)
	must(s.Ack(second))
	s.leave()
	left(destination, "a", "c")
}

func refuses() {
	s, destination := filled("nack", "x")
	subscription := s.subscribe(destination, stomp.AckClientIndividual)
	must(s.Nack(next(subscription)))
	again := next(subscription)
	equal(again.Header.Get("redelivered"), "true")
	must(s.Ack(again))
	s.leave()
	left(destination)
}

func isRedeliveredAfterALostConnection() {
	s, destination := filled("lost", "x")
	next(s.subscribe(destination, stomp.AckClientIndividual))
	must(s.socket.Close())
	heir := open(0)
	again := next(heir.subscribe(destination, stomp.AckClientIndividual))
	equal(again.Header.Get("redelivered"), "true")
	must(heir.Ack(again))
	heir.leave()
}

func commitsAndAborts() {
	s, destination := filled("transaction")
	subscription := s.subscribe(destination, stomp.AckAuto)
	undone := s.Begin()
	must(undone.Send(destination, "", []byte("never")))
	must(undone.AbortWithReceipt())
	done := s.Begin()
	must(done.Send(destination, "", []byte("first")))
	must(done.Send(destination, "", []byte("second")))
	s.nothingWaits(subscription)
	must(done.CommitWithReceipt())
	equal(string(next(subscription).Body), "first")
	equal(string(next(subscription).Body), "second")
	s.nothingWaits(subscription)
	s.leave()
}

func acknowledgesInATransaction() {
	s, destination := filled("transacted-ack", "x")
	subscription := s.subscribe(destination, stomp.AckClientIndividual)
	undone := s.Begin()
	must(undone.Ack(next(subscription)))
	must(undone.AbortWithReceipt())
	again := next(subscription)
	equal(again.Header.Get("redelivered"), "true")
	done := s.Begin()
	must(done.Ack(again))
	must(done.CommitWithReceipt())
	s.leave()
	left(destination)
}

func keepsHeartBeats() {
	s := open(500 * time.Millisecond)
	eventually("four heart-beats", func() bool { return s.socket.beats.Load() >= 4 })
	s.send(queue("beats"), "still here")
	s.leave()
}

func unsubscribes() {
	s, destination := filled("unsubscribe")
	subscription := s.subscribe(destination, stomp.AckAuto)
	s.send(destination, "one")
	equal(string(next(subscription).Body), "one")
	must(subscription.Unsubscribe())
	s.send(destination, "two")
	_, isOpen := <-subscription.C
	equal(isOpen, false)
	s.leave()
	left(destination, "two")
}

func disconnectsWithAReceipt() {
	s := open(0)
	s.leave()
	equal(s.Send(queue("gone"), "", nil), error(stomp.ErrAlreadyClosed))
}

func carriesBytes() {
	everyByte := make([]byte, 768)
	for position := range everyByte {
		everyByte[position] = byte(position)
	}
	bodies := []string{string(everyByte), "\x00", "Ж 東京 🎈", strings.Repeat("x\x00", 100_000)}
	s, destination := filled("bytes", bodies...)
	subscription := s.subscribe(destination, stomp.AckAuto)
	for _, body := range bodies {
		equal(bytes.Equal(next(subscription).Body, []byte(body)), true)
	}
	s.leave()
}

func carriesAwkwardHeaders() {
	s, destination := filled("headers")
	subscription := s.subscribe(destination, stomp.AckAuto)
	s.send(destination, "x", stomp.SendOpt.Header("awkward", awkward[version]), stomp.SendOpt.Header("empty", ""))
	header := next(subscription).Header
	equal(header.Get("awkward"), awkward[version])
	_, isThere := header.Contains("empty")
	equal(isThere, true)
	s.leave()
}

func hearsOfErrors() {
	s := open(0)
	options := []func(*frame.Frame) error{stomp.SendOpt.Header("priority", "high"), stomp.SendOpt.Receipt}
	err := s.Send(queue("errors"), "", []byte("x"), options...)
	refused, isError := err.(stomp.Error)
	equal(isError, true)
	equal(refused.Frame.Command, "ERROR")
	equal(refused.Frame.Header.Get("receipt-id") != "", true)
	equal(strings.Contains(refused.Message, "priority"), true)
}

var checks = map[string]func(){
	"connects":                               connects,
	"sends_and_receives_in_order":            sendsAndReceivesInOrder,
	"acknowledges_all_before":                acknowledgesAllBefore,
	"acknowledges_one":                       acknowledgesOne,
	"refuses":                                refuses,
	"is_redelivered_after_a_lost_connection": isRedeliveredAfterALostConnection,
	"commits_and_aborts":                     commitsAndAborts,
	"acknowledges_in_a_transaction":          acknowledgesInATransaction,
	"keeps_heart_beats":                      keepsHeartBeats,
	"unsubscribes":                           unsubscribes,
	"disconnects_with_a_receipt":             disconnectsWithAReceipt,
	"carries_bytes":                          carriesBytes,
	"carries_awkward_headers":                carriesAwkwardHeaders,
	"hears_of_errors":                        hearsOfErrors,
}

func try(name string, check func()) {
	defer func() {
		if why := recover(); why != nil {
			fmt.Printf("failed %s: %s\n", name, strings.ReplaceAll(fmt.Sprint(why), "\n", " | "))
			return
		}
		fmt.Printf("ok %s\n", name)
	}()
	check()
}

func main() {
	var running sync.WaitGroup
	for name, check := range checks {
		if version == stomp.V10 && (name == "refuses" || name == "keeps_heart_beats") {
			continue
		}
		running.Add(1)
		go func() {
			defer running.Done()
			try(name, check)
		}()
	}
	running.Wait()
}
