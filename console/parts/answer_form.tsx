import { useState } from "preact/hooks";
import { api, load, type Schemas } from "../live/api.ts";
import { useResource } from "../live/resource.ts";
import { hasScope } from "../live/session.ts";
import { attempt } from "./toast.tsx";

/** The tool call that a question is about, the whole of it. */
export function ToolCall({ question }: { question: Schemas["Question"] }) {
  const { id, truncated } = question;
  const read = () =>
    truncated
      ? load(api.GET("/api/questions/{id}", { params: { path: { id } } }))
      : Promise.resolve(question);
  const whole = useResource(id, read).data ?? question;
  return (
    <>
      <p>
        Allow this call of <code>{whole.tool}</code>?
      </p>
      <pre class="call" tabIndex={0} aria-label={`Arguments of ${whole.tool}`}>{whole.arguments}</pre>
    </>
  );
}

export function AnswerForm({ question: { id, tool, options } }: { question: Schemas["Question"] }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  if (!hasScope("write:questions")) return null;
  async function submit(answer: string): Promise<void> {
    if (busy || answer.trim() === "") return;
    setBusy(true);
    const params = { path: { id } };
    const send = () => load(api.POST("/api/questions/{id}/answer", { params, body: { answer } }));
    if (await attempt(send, "Answer sent")) setText("");
    setBusy(false);
  }
  return (
    <form class="answer" onSubmit={(event) => (event.preventDefault(), void submit(text))}>
      {options.map((option) => (
        <button
          key={option}
          type="button"
          disabled={busy}
          onClick={() => void submit(option)}
        >
          {option}
        </button>
      ))}
      {tool === "" && (
        <span class="answer-words">
          <input
            aria-label="Your answer"
            placeholder={options.length === 0 ? "Your answer" : "Another answer"}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <button type="submit" disabled={busy || text.trim() === ""}>Answer</button>
        </span>
      )}
    </form>
  );
}
