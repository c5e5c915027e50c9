package svc.visitor.client;

import java.net.http.HttpClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * What {@code check} comes to with each behavior of a service that misbehaves: {@code java Hostile URL TIMEOUT_MS DEADLINE_MS
 * BEHAVIOR...} prints a line for each.
 */
final class Hostile {
  private static final String REQUEST_ID = "01993f0e-52a1-7c3d-9b52-6f1f3c0a9d11";

  private Hostile() {}

  public static void main(String[] arguments) throws InterruptedException {
    Duration timeout = Duration.ofMillis(Long.parseLong(arguments[1]));
    Duration deadline = Duration.ofMillis(Long.parseLong(arguments[2]));
    String warm = arguments[0] + "-warm/an_event"; // what takes time once is no part of a call
    resultOf(new Client(warm, "svc_sk_key", timeout, deadline, Retries.of(3), HttpClient.newBuilder()));
    List<Thread> calls = new ArrayList<>();
    for (int i = 3; i < arguments.length; i++) {
      String behavior = arguments[i];
      String url = arguments[0] + "/" + behavior.replace(' ', '_');
      Client client = new Client(url, "svc_sk_key", timeout, deadline, Retries.of(3), HttpClient.newBuilder());
      calls.add(new Thread(() -> {
        long began = System.nanoTime();
        String result = resultOf(client);
        System.out.println("hostile\t" + behavior + "\t" + result + "\t" + (System.nanoTime() - began) / 1_000_000);
      }));
    }
    for (Thread call : calls) call.start();
    for (Thread call : calls) call.join();
    System.exit(0);
  }

  private static String resultOf(Client client) {
    try {
      return client.check(REQUEST_ID, new Action("https://shop.example", "signup"), id -> true).decision().name().toLowerCase();
    } catch (ApiException refused) {
      return refused.status() + " " + refused.code();
    } catch (UnreachableException lost) {
      return "unreachable";
    } catch (RuntimeException other) {
      return other.toString();
    }
  }
}
