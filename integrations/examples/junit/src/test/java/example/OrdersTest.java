package example;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.fusesource.hawtbuf.Buffer.ascii;
import static org.fusesource.stomp.client.Constants.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import org.fusesource.stomp.client.BlockingConnection;
import org.fusesource.stomp.client.Stomp;
import org.fusesource.stomp.codec.StompFrame;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class OrdersTest {
    private static TestBroker broker;
    private BlockingConnection client;

    @BeforeAll
    static void startBroker() throws Exception {
        broker = new TestBroker("--queue", "orders");
    }

    @AfterAll
    static void endBroker() throws Exception {
        broker.close();
    }

    @BeforeEach
    void connect() throws Exception {
        client = new Stomp(broker.stompUrl).connectBlocking();
    }

    @AfterEach
    void disconnect() throws Exception {
        client.close();
    }

    @Test
    void anOrderIsTakenAndAcknowledged() throws Exception {
        StompFrame send = new StompFrame(SEND);
        send.addHeader(DESTINATION, ascii("orders"));
        send.content(ascii("two coffees"));
        client.request(send); // waits for the RECEIPT

        StompFrame subscribe = new StompFrame(SUBSCRIBE);
        subscribe.addHeader(ID, ascii("1"));
        subscribe.addHeader(DESTINATION, ascii("orders"));
        subscribe.addHeader(ACK_MODE, ascii("client-individual"));
        client.request(subscribe);
        StompFrame message = client.receive();
        assertEquals("two coffees", new String(message.content().toByteArray(), UTF_8));

        StompFrame ack = new StompFrame(ACK);
        ack.addHeader(SUBSCRIPTION, ascii("1"));
        ack.addHeader(MESSAGE_ID, message.getHeader(MESSAGE_ID));
        client.request(ack);
        assertTrue(queue("orders").contains("\"messageCount\": 0"), queue("orders"));
    }

    /** What the broker says of a queue: depth, consumers, what was acknowledged. */
    private static String queue(String name) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(broker.httpUrl + "api/queues/" + name)).build();
        return HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body();
    }
}
