import { useState } from "preact/hooks";
import { api, ask, type Schemas } from "../../live/api.ts";
import { signIn } from "../../live/session.ts";
import { TextField } from "../../parts/field.tsx";
import { useSend } from "../../parts/form.tsx";
import { RefusalNotice } from "../../parts/notice.tsx";
import { say } from "../../parts/toast.tsx";

/** Changes one's own password: every other login ends, and this browser is signed in anew. */
export function PasswordForm({ user }: { user: Schemas["User"] }) {
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const { refusal, busy, submit } = useSend(async () => {
    await change(user, current, next);
    await signIn(user.name, next);
    say("The password is changed");
    setCurrent("");
    setNext("");
  });
  return (
    <form class="form" onSubmit={submit}>
      <RefusalNotice refusal={refusal} />
      {/* Says to a password manager whose password this is. */}
      <input type="text" autocomplete="username" value={user.name} readOnly hidden />
      <TextField
        label="Current password"
        name="current_password"
        type="password"
        value={current}
        onInput={setCurrent}
        refusal={refusal}
        autocomplete="current-password"
        required
      />
      <TextField
        label="New password"
        name={user.origin === "operator" ? "new_password" : "password"}
        type="password"
        value={next}
        onInput={setNext}
        refusal={refusal}
        autocomplete="new-password"
        hint="At least 10 characters. Your logins in other places end"
        required
      />
      <div class="actions">
        <button type="submit" disabled={busy}>Change the password</button>
      </div>
    </form>
  );
}

// The operator's password stands with the service itself (contract 5.1).
async function change({ id, origin }: Schemas["User"], current: string, next: string): Promise<void> {
  if (origin === "operator") {
    const body = { current_password: current, new_password: next };
    await ask(api.PUT("/api/system/password", { body }));
    return;
  }
  const params = { path: { id_or_name: id } };
  const body = { current_password: current, password: next };
  await ask(api.PUT("/api/users/{id_or_name}/password", { params, body }));
}
