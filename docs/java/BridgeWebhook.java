import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.Base64;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Whether a webhook comes from the bridge: the signatures of Standard Webhooks, over exactly the bytes that came. */
public final class BridgeWebhook {
    private static final long TOLERANCE_SECONDS = 5 * 60;

    private final List<byte[]> secrets;

    /** The secrets that are trusted, such as whsec_…; two while one is being replaced. */
    public BridgeWebhook(List<String> secrets) {
        this.secrets = secrets.stream().map(secret -> Base64.getDecoder().decode(secret.substring("whsec_".length()))).toList();
    }

    /**
     * Checks the headers webhook-id, webhook-timestamp and webhook-signature against the body, before it is parsed. Then drop the event if its id is known.
     */
    public boolean isGenuine(String id, String timestamp, String signatures, byte[] body, Instant now) {
        if (id == null || timestamp == null || signatures == null || !timestamp.matches("\\d{1,12}")
            || Math.abs(now.getEpochSecond() - Long.parseLong(timestamp)) > TOLERANCE_SECONDS) {
            return false;
        }
        byte[] head = (id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8);
        boolean genuine = false;
        for (byte[] secret : secrets) {
            byte[] expected = ("v1," + Base64.getEncoder().encodeToString(sign(secret, head, body))).getBytes(StandardCharsets.UTF_8);
            for (String signature : signatures.split(" ")) {
                genuine |= MessageDigest.isEqual(expected, signature.getBytes(StandardCharsets.UTF_8));
            }
        }
        return genuine;
    }

    private static byte[] sign(byte[] secret, byte[] head, byte[] body) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret, "HmacSHA256"));
            mac.update(head);
            return mac.doFinal(body);
        } catch (GeneralSecurityException everyJdkHasIt) {
            throw new IllegalStateException(everyJdkHasIt);
        }
    }
}
