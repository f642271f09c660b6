import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { api, ask, type ChatSession } from "../../live/api.ts";
import { workers } from "../../live/workers.ts";
import { confirmed } from "../../parts/dialog.tsx";
import { Choice, TextField } from "../../parts/field.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";
import { attempt } from "../../parts/toast.tsx";

/** Name and worker of a conversation, and its end. */
export function ChatSettings({ session, onClose }: { session: ChatSession; onClose: () => void }) {
  const [name, setName] = useState(session.name);
  const [worker, setWorker] = useState(session.worker_id ?? "");
  const [, navigate] = useLocation();
  const path = { id: session.id };
  const sent = useSend(async () => {
    await ask(api.PUT("/api/local/sessions/{id}", { params: { path }, body: { name, worker_id: worker } }));
    onClose();
  });
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
    <DialogForm
      title="Conversation"
      action="Save"
      sent={sent}
      onClose={onClose}
      onDelete={() => void remove()}
      narrow
    >
      <TextField label="Name" name="name" value={name} onInput={setName} refusal={sent.refusal} required />
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
    </DialogForm>
  );
}
