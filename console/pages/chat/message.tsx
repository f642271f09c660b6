import { Info, Paperclip } from "lucide-preact";
import { Link } from "wouter-preact";
import type { ChatMessage, Question } from "../../live/api.ts";
import { saveAnswer } from "../../live/download.ts";
import { Act } from "../../parts/button.tsx";
import { AnswerForm } from "../../parts/answer_form.tsx";
import { clockText, dayText, sizeText, timeText } from "../../parts/format.ts";
import { Markdown } from "../../parts/markdown.tsx";
import { CopyButton } from "../../parts/short_id.tsx";
import { attempt } from "../../parts/toast.tsx";
import { now } from "../../live/clock.ts";
import type { Sending } from "./composer.tsx";
import { Why } from "./routing_reason.tsx";

/** Something that was said: by the reader at the right, by others at the left. */
export function MessageView(
  { message, sessionId, day, question }: {
    message: ChatMessage;
    sessionId: string;
    day: boolean;
    /** The question that it asks, while that is open. */
    question?: Question | undefined;
  },
) {
  const { id, role, content, ts, media } = message;
  const mine = role === "user";
  return (
    <>
      {day && <p class="day">{dayText(ts, now.value)}</p>}
      <article class={mine ? "said mine" : "said"} aria-label={mine ? "You" : "Reply"}>
        {content !== "" && (mine ? <p class="plain">{content}</p> : <Markdown text={content} />)}
        {media !== null && <MediaView media={media} sessionId={sessionId} />}
        {question !== undefined && <AnswerForm question={question} />}
        <p class="said-foot">
          <time dateTime={new Date(ts).toISOString()} title={timeText(ts)}>{clockText(ts)}</time>
          {mine && (
            <Link
              href={`/console/messages/${encodeURIComponent(id)}`}
              class="icon small"
              aria-label="What happened with this message"
              title="What happened with this message"
            >
              <Info size={14} aria-hidden="true" />
            </Link>
          )}
          {mine && <Why messageId={id} />}
          {content !== "" && <CopyButton text={content} what="message" />}
        </p>
      </article>
    </>
  );
}

/** Something that is on its way. */
export function SendingView({ sending }: { sending: Sending }) {
  return (
    <article class="said mine sending" aria-label="You">
      <p class="plain">{sending.content}</p>
      {sending.file !== "" && (
        <p class="file">
          <Paperclip size={14} aria-hidden="true" /> {sending.file}
        </p>
      )}
      <p class="said-foot">{sending.messageId === null ? "sending" : "sent"}</p>
    </article>
  );
}

// A stored file is named after its id and then as its sender called it.
const STORED_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-/;

type Media = NonNullable<ChatMessage["media"]>;

function MediaView({ media, sessionId }: { media: Media; sessionId: string }) {
  const stored = media.path.split("/").at(-1) ?? "";
  return (
    <Act class="file" run={() => save(sessionId, stored)}>
      <Paperclip size={14} aria-hidden="true" />
      <span>{media.name.replace(STORED_ID, "")}</span>
      <span class="quiet">{sizeText(media.size)}</span>
    </Act>
  );
}

async function save(sessionId: string, stored: string): Promise<void> {
  const path = `/api/local/sessions/${sessionId}/media/${encodeURIComponent(stored)}`;
  await attempt(() => saveAnswer(new Request(path)));
}
