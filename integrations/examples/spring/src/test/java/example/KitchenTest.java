package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.reflect.Type;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.event.EventListener;
import org.springframework.messaging.converter.StringMessageConverter;
import org.springframework.messaging.simp.SimpMessagingTemplate;
import org.springframework.messaging.simp.broker.BrokerAvailabilityEvent;
import org.springframework.messaging.simp.stomp.StompFrameHandler;
import org.springframework.messaging.simp.stomp.StompHeaders;
import org.springframework.messaging.simp.stomp.StompSession;
import org.springframework.messaging.simp.stomp.StompSessionHandlerAdapter;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.web.socket.client.standard.StandardWebSocketClient;
import org.springframework.web.socket.messaging.WebSocketStompClient;

@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
class KitchenTest {
    private static TestBroker broker;

    @DynamicPropertySource
    static void startBroker(DynamicPropertyRegistry properties) throws Exception {
        broker = new TestBroker();
        String[] place = broker.stompUrl.split("[:/]+");
        properties.add("broker.host", () -> place[1]);
        properties.add("broker.port", () -> place[2]);
        properties.add("broker.user", () -> "admin");
        properties.add("broker.password", () -> "admin");
    }

    @AfterAll
    static void endBroker() throws Exception {
        broker.close();
    }

    /** The relay says when its own connection to the broker is there. */
    @TestConfiguration
    static class Availability {
        static final BlockingQueue<Boolean> SEEN = new LinkedBlockingQueue<>();

        @EventListener
        void onAvailability(BrokerAvailabilityEvent event) {
            SEEN.add(event.isBrokerAvailable());
        }
    }

    @LocalServerPort
    private int port;

    @Autowired
    private SimpMessagingTemplate template;

    private final ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
    private WebSocketStompClient browser;
    private StompSession session;

    @BeforeEach
    void connect() throws Exception {
        if (Availability.SEEN.peek() == null) {
            assertEquals(true, Availability.SEEN.poll(30, TimeUnit.SECONDS));
            Availability.SEEN.add(true);
        }
        scheduler.initialize();
        browser = new WebSocketStompClient(new StandardWebSocketClient());
        browser.setMessageConverter(new StringMessageConverter());
        browser.setTaskScheduler(scheduler);
        session = browser.connectAsync("ws://127.0.0.1:" + port + "/kitchen", new StompSessionHandlerAdapter() {})
                .get(30, TimeUnit.SECONDS);
        session.setAutoReceipt(true);
    }

    @AfterEach
    void disconnect() {
        session.disconnect();
        browser.stop();
        scheduler.shutdown();
    }

    /** Waits for the broker's RECEIPT. There is none of /user destinations, which Spring handles itself. */
    private BlockingQueue<String> subscribe(String destination) throws Exception {
        BlockingQueue<Boolean> receipts = new LinkedBlockingQueue<>();
        Received received = new Received();
        session.subscribe(destination, received).addReceiptTask(() -> receipts.add(true));
        assertEquals(true, receipts.poll(30, TimeUnit.SECONDS), "no RECEIPT of the SUBSCRIBE");
        return received.bodies;
    }

    private static final class Received implements StompFrameHandler {
        final BlockingQueue<String> bodies = new LinkedBlockingQueue<>();

        @Override
        public Type getPayloadType(StompHeaders headers) {
            return String.class;
        }

        @Override
        public void handleFrame(StompHeaders headers, Object body) {
            bodies.add((String) body);
        }
    }

    @Test
    void aControllerAnswersAllThroughTheBroker() throws Exception {
        BlockingQueue<String> cooked = subscribe("/topic/cooked");
        session.send("/app/orders", "two coffees");
        assertEquals("cooked two coffees", cooked.poll(30, TimeUnit.SECONDS));
    }

    @Test
    void theTemplateReachesSubscribers() throws Exception {
        BlockingQueue<String> cooked = subscribe("/topic/news");
        template.convertAndSend("/topic/news", "closed on Monday");
        assertEquals("closed on Monday", cooked.poll(30, TimeUnit.SECONDS));
    }

    @Test
    void aBrowserWorksOffAQueueOfTheBroker() throws Exception {
        template.convertAndSend("/queue/dishes", "plates");
        assertEquals("plates", subscribe("/queue/dishes").poll(30, TimeUnit.SECONDS));
    }

    @Test
    void anAnswerForOneUser() throws Exception {
        session.setAutoReceipt(false);
        Received bills = new Received();
        session.subscribe("/user/queue/bills", bills);
        session.send("/app/bill", "two coffees");
        assertEquals("bill for two coffees", bills.bodies.poll(30, TimeUnit.SECONDS));
    }
}
