import { Paperclip, SendHorizontal, X } from "lucide-preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, load } from "../../live/api.ts";
import { type ApiError, toApiError } from "../../live/api_error.ts";
import { useDraft } from "../../live/draft.ts";
import { addPending, recoverPending, removePending } from "../../live/pending_messages.ts";
import { workers } from "../../live/workers.ts";
import { IconButton } from "../../parts/button.tsx";
import { formatSize } from "../../parts/format.ts";
import { ErrorNotice } from "../../parts/notice.tsx";
import { findMentions, insertMention, MentionList } from "./mention_list.tsx";
import { findMisspelledMention } from "./misspelled_mention.ts";
import type { OutgoingMessage } from "./message.tsx";
import { useSendNow } from "./send_now.ts";
import { upload } from "./upload.ts";

interface ComposerProps {
  id: string;
  /** The run in progress, or "". */
  executionId: string;
  setOutgoing: (change: (before: OutgoingMessage[]) => OutgoingMessage[]) => void;
  /** Called with the text after the service has accepted it. */
  onSent: (content: string) => void;
}

const ROWS_MAX = 8;
let number = 0;

/** The field for a new message. Its text is kept until it is sent, even after a reload or a sign-in. */
export function Composer({ id, executionId, setOutgoing, onSent }: ComposerProps) {
  const [text, setText] = useDraft(`chat.${id}`);
  const [file, setFile] = useState<File | null>(null);
  const [uploadShare, setUploadShare] = useState<number | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [misspelled, setMisspelled] = useState<ReturnType<typeof findMisspelledMention>>(null);
  const [choice, setChoice] = useState(0);
  const steering = useSendNow(executionId);
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const names = findMentions(text, area.current?.selectionStart ?? text.length);
  useEffect(() => setChoice(0), [names.length]);
  // The text may change while a request is running.
  const latest = useRef(text);
  latest.current = text;
  const uploaded = useRef<{ file: File; path: string } | null>(null);
  useEffect(() => {
    // On a phone the keyboard would cover the messages.
    if (!isTouchScreen()) area.current?.focus();
    restore(recoverPending(id));
  }, []);

  // Puts unsent text before newer text.
  function restore(content: string): void {
    if (content !== "" && content !== latest.current) {
      setText([content, latest.current].filter(Boolean).join("\n\n"));
    }
  }

  async function send(event?: Event): Promise<void> {
    event?.preventDefault();
    const content = text.trim();
    if (content === "" && file === null || uploadShare !== null || steering.busy) return;
    const wrong = findMisspelledMention(content, (workers.value ?? []).map(({ name }) => name));
    setMisspelled(wrong);
    if (wrong !== null) return;
    const mine: OutgoingMessage = { number: ++number, content, file: file?.name ?? "", messageId: null };
    setError(null);
    steering.forget();
    setText("");
    // The same key keeps a second attempt after a broken connection from creating a second message.
    const key = addPending(id, content, mine.file);
    setOutgoing((before) => [...before.slice(-20), mine]);
    try {
      const body: { content: string; media_path?: string } = { content };
      if (file !== null) {
        setUploadShare(0);
        if (uploaded.current?.file !== file) {
          uploaded.current = { file, path: await upload(id, file, setUploadShare) };
        }
        body.media_path = uploaded.current.path;
      }
      const headers = { "Idempotency-Key": key };
      const queued = await load(
        api.POST("/api/local/sessions/{id}/messages", { params: { path: { id } }, body, headers }),
      );
      setFile(null);
      removePending(id, key);
      onSent(content);
      setOutgoing((before) =>
        before.map((one) => one === mine ? { ...one, messageId: queued.message_id } : one)
      );
    } catch (thrown) {
      const failure = toApiError(thrown);
      setError(failure);
      if (failure.status !== 0) removePending(id, key);
      setOutgoing((before) => before.filter((one) => one !== mine));
      restore(content);
    }
    setUploadShare(null);
  }

  async function sendNow(): Promise<void> {
    if (steering.busy) return;
    setError(null);
    try {
      await steering.send(text.trim());
      setText("");
    } catch (thrown) {
      setError(toApiError(thrown));
    }
    area.current?.focus();
  }

  function complete(name: string): void {
    setText(insertMention(text, area.current?.selectionStart ?? text.length, name));
    area.current?.focus();
  }

  function correct(): void {
    if (misspelled === null) return;
    setText(text.replace(`@${misspelled.word}`, `@${misspelled.meant}`));
    setMisspelled(null);
    area.current?.focus();
  }

  function onKeyDown(event: KeyboardEvent): void {
    const name = names[Math.min(choice, names.length - 1)];
    if (name !== undefined && (event.key === "Tab" || event.key === "Enter")) {
      event.preventDefault();
      complete(name);
    } else if (names.length > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      setChoice((choice + (event.key === "ArrowDown" ? 1 : names.length - 1)) % names.length);
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !isTouchScreen()) {
      void send(event);
    }
  }

  return (
    <form class="composer" onSubmit={send}>
      <ErrorNotice error={error} />
      {misspelled !== null && (
        <p class="notice bad" role="alert">
          <span>
            No worker named "{misspelled.word}".{" "}
            <button type="button" class="small" onClick={correct}>Use @{misspelled.meant}</button>
          </span>
        </p>
      )}
      {file !== null && (
        <p class="attached">
          <Paperclip size={14} aria-hidden="true" /> {file.name}{" "}
          <span class="quiet">{formatSize(file.size)}</span>
          {uploadShare === null
            ? <IconButton icon={X} small label="Remove file" onClick={() => setFile(null)} />
            : <progress max={1} value={uploadShare} aria-label="Upload" />}
        </p>
      )}
      <p class="hint" role="status">{steering.outcome}</p>
      <div class="composer-line">
        {names.length > 0 && <MentionList names={names} choice={choice} onChoose={complete} />}
        <IconButton icon={Paperclip} size={18} label="Attach file" onClick={() => picker.current?.click()} />
        <input
          ref={picker}
          type="file"
          hidden
          onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)}
        />
        <textarea
          ref={area}
          aria-label="Message"
          placeholder="Write a message"
          rows={Math.min(ROWS_MAX, text.split("\n").length)}
          value={text}
          readOnly={steering.busy}
          onInput={(event) => (setMisspelled(null), setText(event.currentTarget.value))}
          onKeyDown={onKeyDown}
          {...(names.length > 0
            ? { "aria-controls": "mentions", "aria-activedescendant": `mention-${choice}` }
            : {})}
        />
        {steering.offered && (
          <button
            type="button"
            class="send-now"
            title="Gives your words to the agent during its run"
            aria-busy={steering.busy}
            disabled={text.trim() === "" || file !== null}
            onClick={() => void sendNow()}
          >
            Send now
          </button>
        )}
        <button
          type="submit"
          class="primary icon"
          aria-label="Send"
          disabled={text.trim() === "" && file === null || uploadShare !== null}
        >
          <SendHorizontal size={18} aria-hidden="true" />
        </button>
      </div>
    </form>
  );
}

// On the keyboard of a phone Enter starts a new line.
function isTouchScreen(): boolean {
  return matchMedia("(pointer: coarse)").matches;
}
