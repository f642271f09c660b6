import { useRef, useState } from "preact/hooks";
import { LoginRefused, signIn, username } from "../../live/session.ts";
import { TextField } from "../../parts/field.tsx";

/** The login; `again` over a page whose session has ended, which goes on where it was (contract 17). */
export function LoginPage({ again = false }: { again?: boolean }) {
  const [name, setName] = useState(username.value);
  const [password, setPassword] = useState("");
  const [fault, setFault] = useState("");
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setFault("");
    try {
      await signIn(name.trim(), password);
    } catch (error) {
      setFault(error instanceof LoginRefused ? error.message : "Signing in did not work. Try again.");
      setPassword("");
      form.current?.querySelector<HTMLInputElement>("[type=password]")?.focus();
    }
    setBusy(false);
  }
  return (
    <main class={again ? "login over" : "login"}>
      <form onSubmit={submit} class="login-card" ref={form}>
        <h1>{again ? "Sign in again" : "Sign in to svc"}</h1>
        {again && <p class="quiet">The session has ended. Your page is still here, with what you typed.</p>}
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          autocomplete="username"
          required
          autofocus={name === ""}
        />
        <TextField
          label="Password"
          type="password"
          value={password}
          onInput={setPassword}
          autocomplete="current-password"
          required
          autofocus={name !== ""}
        />
        {fault !== "" && <p class="wrong" role="alert">{fault}</p>}
        <button type="submit" class="primary" aria-busy={busy}>Sign in</button>
        {!again && (
          <details class="hint">
            <summary>Which password?</summary>
            <p>
              The service printed one when it was started for the first time, for the name{" "}
              <code>admin</code>. A new one is set on its machine with <code>svc ctl system password</code>.
            </p>
          </details>
        )}
      </form>
    </main>
  );
}
