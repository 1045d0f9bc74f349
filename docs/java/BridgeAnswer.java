import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What an answer of the bridge that is not 200 says, read without a JSON library. */
public final class BridgeAnswer {
    private static final Pattern FIELD = Pattern.compile("\"(taskId|type)\"\\s*:\\s*\"((?:[^\"\\\\]|\\\\.)*)\"");

    private final int status;
    private final String errorSource;
    private String taskId;
    private String type;

    private BridgeAnswer(int status, String errorSource, String taskId) {
        this.status = status;
        this.errorSource = errorSource;
        this.taskId = taskId;
    }

    /** Reads status, headers and body; never throws, because a proxy may have answered with a page of its own. */
    public static BridgeAnswer read(int status, Map<String, Collection<String>> headers, byte[] body) {
        BridgeAnswer answer = new BridgeAnswer(status, header(headers, "Error-Source"), header(headers, "Task-Id"));
        Matcher field = FIELD.matcher(new String(body, StandardCharsets.UTF_8));
        while (field.find()) {
            String value = field.group(2);
            if (field.group(1).equals("taskId")) {
                answer.taskId = answer.taskId == null ? value : answer.taskId;
            } else {
                answer.type = answer.type == null ? value : answer.type;
            }
        }
        return answer;
    }

    /** The task, if the answer came from the bridge and there is one. */
    public Optional<String> taskId() {
        return Optional.ofNullable(taskId);
    }

    /** Such as /problems/agenda-not-ready; empty when a proxy answered. */
    public String type() {
        return type == null ? "" : type;
    }

    /** Nothing failed: the task goes on, and calling again joins it. Proxies' own 502 and 504 are of this kind too. */
    public boolean goesOn() {
        return status == 504 || (errorSource == null && status == 502) || (status == 503 && taskId != null);
    }

    private static String header(Map<String, Collection<String>> headers, String name) {
        return headers.entrySet().stream()
            .filter(entry -> name.equalsIgnoreCase(entry.getKey()))
            .flatMap(entry -> entry.getValue().stream())
            .findFirst()
            .orElse(null);
    }
}
