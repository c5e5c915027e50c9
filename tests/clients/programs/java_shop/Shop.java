import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import svc.visitor.client.Action;
import svc.visitor.client.Checked;
import svc.visitor.client.Client;

/** A shop that decides about sign-ups: it prints what came of each line of its input. */
final class Shop {
  public static void main(String[] arguments) throws Exception {
    Client client = new Client(arguments[0], arguments[1]);
    Set<String> used = new HashSet<>();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] cells = line.split("\t", -1);
      Action action = new Action(arguments[2], cells[1]).action("sign_up").allowUnknown();
      if (!cells[2].isEmpty()) action.ip(cells[2]);
      Checked<?> checked =
          cells[0].contains(".")
              ? client.checkVerdict(cells[0], arguments[3], "development", action, used::add)
              : client.check(cells[0], action, used::add);
      System.out.println(checked.decision().name().toLowerCase() + "\t" + String.join("\t", checked.reasons()));
    }
  }
}
