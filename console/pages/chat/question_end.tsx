import { useGet } from "../../live/resource.ts";
import { formatActor, formatClock } from "../../parts/format.ts";

/** The answer to a question that has ended, or why it has none. */
export function QuestionEnd({ id }: { id: string }) {
  const question = useGet("/api/questions/{id}", { path: { id } }).data;
  if (question === undefined || question.status === "open") return null;
  const { status, answer, answered_by, answered_at } = question;
  const time = answered_at === null ? "" : `, ${formatClock(answered_at)}`;
  const words = status === "cancelled"
    ? "Not answered: the question was cancelled."
    : answer === ""
    ? "Not answered in time."
    : answered_by === "default"
    ? `No answer in time. Default: ${answer}`
    : `${formatActor(answered_by)} answered: ${answer}${time}`;
  return <p class="quiet">{words}</p>;
}
