import { Info, Paperclip } from "lucide-preact";
import { Link } from "wouter-preact";
import type { Schemas } from "../../live/api.ts";
import { now } from "../../live/clock.ts";
import { saveAnswer } from "../../live/download.ts";
import { AnswerForm, ToolCall } from "../../parts/answer_form.tsx";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { formatClock, formatDay, formatSize, formatTime } from "../../parts/format.ts";
import { Markdown } from "../../parts/markdown.tsx";
import { CopyButton } from "../../parts/short_id.tsx";
import { stripText } from "../../parts/plain_text.ts";
import { FailureCard } from "./failure_card.tsx";
import { QuestionEnd } from "./question_end.tsx";
import { RoutingReason } from "./routing_reason.tsx";
import { type Sender, SenderName, WorkerName } from "./sender.tsx";

interface MessageProps {
  message: Schemas["LocalMessage"];
  sessionId: string;
  /** Whether the message is the first of its day. */
  day: boolean;
  question?: Schemas["Question"] | undefined;
  /** Whether the console has loaded the open questions. */
  questionsKnown: boolean;
  sender?: Sender | undefined;
  /** The failed run that the message reports. */
  failure?: Schemas["Execution"] | undefined;
}

export function MessageView(props: MessageProps) {
  const { message, sessionId, day, question, questionsKnown, sender, failure } = props;
  const { id, role, content, ts, media } = message;
  const mine = role === "user";
  const asked = questionsKnown && hasScope("read:questions") ? message.question_id : null;
  return (
    <>
      {day && <p class="day">{formatDay(ts, now.value)}</p>}
      <article class={mine ? "said mine" : "said"} aria-label={mine ? "You" : "Reply"}>
        {!mine && failure === undefined && sender !== undefined && <SenderName sender={sender} />}
        {failure !== undefined
          ? (
            <>
              <WorkerName id={failure.worker_id} name={failure.worker_name} />
              <FailureCard execution={failure} />
            </>
          )
          : question !== undefined && question.tool !== ""
          ? <ToolCall question={question} />
          : content !== "" &&
            (mine ? <p class="plain">{content}</p> : <Markdown text={stripText(content)} />)}
        {media !== null && <MediaButton media={media} sessionId={sessionId} />}
        {question !== undefined && <AnswerForm question={question} />}
        {question === undefined && asked && <QuestionEnd id={asked} />}
        <p class="said-foot">
          <time dateTime={new Date(ts).toISOString()} title={formatTime(ts)}>{formatClock(ts)}</time>
          {mine && (
            <Link
              href={`/console/messages/${encodeURIComponent(id)}`}
              class="icon small"
              aria-label="Message trace"
              title="Message trace"
            >
              <Info size={14} aria-hidden="true" />
            </Link>
          )}
          {mine && <RoutingReason messageId={id} />}
          {content !== "" && <CopyButton text={content} subject="message" />}
        </p>
      </article>
    </>
  );
}

/** A message that is being sent. It gets its `messageId` from the service. */
export interface OutgoingMessage {
  number: number;
  content: string;
  file: string;
  messageId: string | null;
}

export function OutgoingMessageView({ message }: { message: OutgoingMessage }) {
  return (
    <article class="said mine sending" aria-label="You">
      <p class="plain">{message.content}</p>
      {message.file !== "" && (
        <p class="file">
          <Paperclip size={14} aria-hidden="true" /> {message.file}
        </p>
      )}
      <p class="said-foot">{message.messageId === null ? "Sending" : "Sent"}</p>
    </article>
  );
}

interface MediaProps {
  media: NonNullable<Schemas["LocalMessage"]["media"]>;
  sessionId: string;
}

function MediaButton({ media, sessionId }: MediaProps) {
  const file = encodeURIComponent(media.path.split("/").at(-1) ?? "");
  return (
    <Button
      class="file"
      press={() => saveAnswer(new Request(`/api/local/sessions/${sessionId}/media/${file}`))}
    >
      <Paperclip size={14} aria-hidden="true" />
      <span>{media.original_name}</span>
      <span class="quiet">{formatSize(media.size)}</span>
    </Button>
  );
}
