import { useState } from "preact/hooks";
import { api, ask, type Schemas } from "../../live/api.ts";
import { username } from "../../live/session.ts";
import { confirmed } from "../../parts/dialog.tsx";
import { Choice, TextField, Tick } from "../../parts/field.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";
import { attempt, say } from "../../parts/toast.tsx";

export type User = Schemas["User"];
type Role = User["role"];

/** A password that the service has made. */
export interface Made {
  name: string;
  password: string;
}

interface FormProps {
  /** Called when it is done, with a password to show. */
  onClose: (made?: Made) => void;
}

const ROLES: readonly (readonly [Role, string])[] = [
  ["viewer", "viewer: sees everything but other people's tokens"],
  ["operator", "operator: also talks, answers, runs and cancels"],
  ["admin", "admin: everything"],
];

/** Somebody new, with a role; a password that the service makes is shown once. */
export function NewUser({ onClose }: FormProps) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("operator");
  const [password, setPassword] = useState("");
  const sent = useSend(async () => {
    const body = { name, role, ...(password === "" ? {} : { password }) };
    const made = await ask(api.POST("/api/users", { body }));
    if (made.password === undefined) say(`${made.name} can sign in`);
    onClose(made.password === undefined ? undefined : { name: made.name, password: made.password });
  });
  const { refusal } = sent;
  return (
    <DialogForm title="New person" action="Make the account" sent={sent} onClose={() => onClose()}>
      <TextField
        label="Name"
        name="name"
        value={name}
        onInput={setName}
        refusal={refusal}
        autocomplete="off"
        required
        autofocus
      />
      <Choice label="Role" value={role} onChange={(value) => setRole(value as Role)} options={ROLES} />
      <TextField
        label="Password"
        name="password"
        type="password"
        value={password}
        onInput={setPassword}
        refusal={refusal}
        autocomplete="new-password"
        hint="Empty: one is made, and shown once"
      />
    </DialogForm>
  );
}

/** Somebody's role and password; or no more sign-in, or no more account. */
export function UserForm({ user, onClose }: FormProps & { user: User }) {
  const [role, setRole] = useState<Role>(user.role);
  const [disabled, setDisabled] = useState(user.disabled);
  const [password, setPassword] = useState("");
  const path = { id_or_name: user.id };
  const self = user.name === username.value;
  const sent = useSend(async () => {
    if (role !== user.role || disabled !== user.disabled) {
      await ask(api.PUT("/api/users/{id_or_name}", { params: { path }, body: { role, disabled } }));
    }
    if (password !== "") {
      await ask(api.PUT("/api/users/{id_or_name}/password", { params: { path }, body: { password } }));
    }
    onClose();
  });
  async function remove(): Promise<void> {
    const yes = await confirmed({
      title: `Delete ${user.name}?`,
      text: "The account, its tokens and its logins end at once. What was done with it stays in the journal.",
      action: "Delete the account",
    });
    if (!yes) return;
    await attempt(() => ask(api.DELETE("/api/users/{id_or_name}", { params: { path } })), "Deleted");
    onClose();
  }
  return (
    <DialogForm
      title={user.name}
      action="Save"
      sent={sent}
      onClose={() => onClose()}
      onDelete={() => void remove()}
    >
      <Choice label="Role" value={role} onChange={(value) => setRole(value as Role)} options={ROLES} />
      <Tick label="May not sign in" checked={disabled} onChange={setDisabled} />
      {/* One's own needs the old one, too: that is on the page of the account. */}
      {user.origin !== "oidc" && !self && (
        <TextField
          label="New password"
          name="password"
          type="password"
          value={password}
          onInput={setPassword}
          refusal={sent.refusal}
          autocomplete="new-password"
          hint="Empty: it stays. A new one ends the logins of this person"
        />
      )}
    </DialogForm>
  );
}
