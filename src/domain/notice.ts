/** What the service tells people by itself (contract 11). */
type NoticeKind =
  | "run_limit.met"
  | "schedule.failed"
  | "schedule.paused"
  | "budget.soft"
  | "budget.hard"
  | "question.opened";

/** What the service itself tells people about a thing (contract 11). */
export interface Notice {
  kind: NoticeKind;
  /** The conversation that the thing belongs to. */
  session_key: string;
  /** The message of that conversation that led to the thing, or "". */
  message_id: string;
  /** The id of the thing: a task, a run, a budget, a question. */
  about: string;
  /** The run that it is about, or "". */
  execution_id?: string;
  /** What happened and the way out, in plain words. */
  content: string;
}
