import { useRef } from "preact/hooks";
import { signIn, username } from "../../live/session.ts";
import { Fields, useForm } from "../../parts/form.tsx";
import { Mark } from "../../parts/mark.tsx";
import { ErrorNotice } from "../../parts/notice.tsx";

/** The login. With `again` it covers the page of an expired session. */
export function LoginPage({ again = false }: { again?: boolean }) {
  const box = useRef<HTMLFormElement>(null);
  const form = useForm({
    initial: { name: username.value, password: "" },
    async send({ name, password }) {
      try {
        await signIn(name.trim(), password);
      } catch (error) {
        form.set({ password: "" });
        box.current?.querySelector<HTMLInputElement>("[type=password]")?.focus();
        throw error;
      }
    },
  });
  const known = username.value !== "";
  return (
    <main class={again ? "login over" : "login"}>
      <form onSubmit={form.submit} class="login-card" ref={box}>
        <Mark size={40} />
        <h1>{again ? "Sign in again" : "Sign in to svc"}</h1>
        {again && <p class="quiet">Your session has expired. Your page and your input are kept.</p>}
        <Fields
          form={form}
          fields={[
            { name: "name", label: "Name", autocomplete: "username", required: true, autofocus: !known },
            {
              name: "password",
              label: "Password",
              type: "password",
              autocomplete: "current-password",
              required: true,
              autofocus: known,
            },
          ]}
        />
        <ErrorNotice error={form.error} />
        <button type="submit" class="primary" aria-busy={form.busy}>Sign in</button>
        {!again && (
          <details class="hint">
            <summary>Which password?</summary>
            <p>
              The service printed a password for <code>admin</code>{" "}
              when it started for the first time. To set a new one, run <code>svc ctl system password</code>
              {" "}
              on its machine.
            </p>
          </details>
        )}
      </form>
    </main>
  );
}
