import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { api, ask, type ChatSession, type Refusal, refusalOf } from "../../live/api.ts";
import { workers } from "../../live/workers.ts";
import { confirmed, Dialog } from "../../parts/dialog.tsx";
import { Choice, TextField } from "../../parts/field.tsx";
import { RefusalNotice } from "../../parts/notice.tsx";
import { attempt } from "../../parts/toast.tsx";

/** Name and worker of a conversation, and its end. */
export function ChatSettings({ session, onClose }: { session: ChatSession; onClose: () => void }) {
  const [name, setName] = useState(session.name);
  const [worker, setWorker] = useState(session.worker_id ?? "");
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [, navigate] = useLocation();
  const path = { id: session.id };
  async function save(event: Event): Promise<void> {
    event.preventDefault();
    try {
      await ask(api.PUT("/api/local/sessions/{id}", { params: { path }, body: { name, worker_id: worker } }));
      onClose();
    } catch (error) {
      setRefusal(refusalOf(error));
    }
  }
  async function remove(): Promise<void> {
    onClose();
    const yes = await confirmed({
      title: `Delete “${session.name}”?`,
      text:
        "All its messages and files are lost, its work is cancelled, and workers forget what was said in it.",
      action: "Delete the conversation",
    });
    if (!yes) return;
    const done = await attempt(
      () => ask(api.DELETE("/api/local/sessions/{id}", { params: { path } })),
      "Deleted",
    );
    if (done) navigate("/console/chat");
  }
  return (
    <Dialog title="Conversation" onClose={onClose}>
      <form onSubmit={save} class="form">
        <RefusalNotice refusal={refusal} />
        <TextField label="Name" name="name" value={name} onInput={setName} refusal={refusal} required />
        <Choice
          label="Worker"
          value={worker}
          onChange={setWorker}
          hint="Who gets what is written here without a name in front"
          options={[
            ["", "The coordinator decides"],
            ...(workers.value ?? []).map((one) => [one.id, one.name] as const),
          ]}
        />
        <div class="actions end">
          <button type="button" class="danger left" onClick={() => void remove()}>Delete</button>
          <button type="button" onClick={onClose}>Leave it</button>
          <button type="submit" class="primary">Save</button>
        </div>
      </form>
    </Dialog>
  );
}
