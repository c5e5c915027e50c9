package svc.visitor.client;

import java.net.http.HttpClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Whether a request may have been carried out: {@code java Connections TIMEOUT_MS NAME URL...} prints a line for each. */
final class Connections {
  private Connections() {}

  public static void main(String[] arguments) throws InterruptedException {
    Duration timeout = Duration.ofMillis(Long.parseLong(arguments[0]));
    List<Thread> calls = new ArrayList<>();
    said(arguments[2], Duration.ofSeconds(10)); // what takes time once is no part of a call
    for (int i = 1; i < arguments.length; i += 2) {
      String name = arguments[i], url = arguments[i + 1];
      calls.add(new Thread(() -> System.out.println("connection\t" + name + "\t" + said(url, timeout))));
    }
    for (Thread call : calls) call.start();
    for (Thread call : calls) call.join();
    System.exit(0);
  }

  private static String said(String url, Duration timeout) {
    try {
      new Client(url, "svc_mk_key", timeout, Retries.of(1), HttpClient.newBuilder()).testWebhook("org", "whk");
      return "a response";
    } catch (UnreachableException lost) {
      return String.valueOf(lost.wasSent());
    } catch (RuntimeException other) {
      return other.toString();
    }
  }
}
