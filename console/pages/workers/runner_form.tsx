import { useState } from "preact/hooks";
import { api, ask } from "../../live/api.ts";
import { TextField, Tick, wordsIn } from "../../parts/field.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";

interface FormProps {
  onClose: (made?: { name: string; token: string }) => void;
}

/** A new runner: what it is called, and what workers ask for it by (contract 18.2). */
export function RunnerForm({ onClose }: FormProps) {
  const [name, setName] = useState("");
  const [labels, setLabels] = useState("");
  const [allowAdmin, setAllowAdmin] = useState(false);
  const sent = useSend(async () => {
    const body = { name, labels: wordsIn(labels), allow_admin: allowAdmin };
    const made = await ask(api.POST("/api/runners", { body }));
    onClose({ name: made.name, token: made.token });
  });
  const { refusal } = sent;
  return (
    <DialogForm title="Add a runner" action="Make its token" sent={sent} onClose={() => onClose()}>
      <TextField
        label="Name"
        name="name"
        value={name}
        onInput={setName}
        refusal={refusal}
        placeholder="mac1"
        hint="One for each machine: two of one name do not work at the same time"
        required
        autofocus
      />
      <TextField
        label="Labels"
        name="labels"
        value={labels}
        onInput={setLabels}
        refusal={refusal}
        placeholder="macos gpu"
        hint="What it has. A worker names the labels that it needs, and runs on a runner that has all of them"
      />
      <div class="field">
        <Tick
          label="It may run workers that may do everything (*:*)"
          checked={allowAdmin}
          onChange={setAllowAdmin}
        />
        <p class="hint">Then whoever owns that machine may do everything, too</p>
      </div>
    </DialogForm>
  );
}
