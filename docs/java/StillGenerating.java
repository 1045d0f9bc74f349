/** The protocol is not there yet, and nothing has failed. */
public final class StillGenerating extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String taskId;

    public StillGenerating(String taskId) {
        super(taskId == null ? "a proxy gave up first; look the task up by its agenda" : "task " + taskId + " goes on");
        this.taskId = taskId;
    }

    /** Poll /task/{taskId}/status; null when a proxy answered: then GET /task?agendaId=… finds it. */
    public String taskId() {
        return taskId;
    }
}
