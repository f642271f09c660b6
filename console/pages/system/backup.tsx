import { Download } from "lucide-preact";
import { useState } from "preact/hooks";
import { saveAnswer } from "../../live/download.ts";
import { may } from "../../live/session.ts";
import { TextField, Tick } from "../../parts/field.tsx";
import { useSend } from "../../parts/form.tsx";
import { Heading } from "../../parts/page.tsx";
import { Empty, RefusalNotice } from "../../parts/notice.tsx";
import { say } from "../../parts/toast.tsx";
import { SystemTabs } from "./system_tabs.tsx";

/** Everything of the service as one file (contract 8.16). */
export function BackupPage() {
  const [withKey, setWithKey] = useState(false);
  const [password, setPassword] = useState("");
  const { refusal, busy, submit } = useSend(async () => {
    const body = withKey ? { include_key: true, password } : {};
    const headers = { "content-type": "application/json" };
    setPassword("");
    await saveAnswer(
      new Request("/api/system/backup", { method: "POST", headers, body: JSON.stringify(body) }),
    );
    say("The backup is saved");
  });
  return (
    <>
      <Heading title="System" />
      <SystemTabs current="/console/system/backup" />
      {!may("write:system")
        ? <Empty title="Only an administrator makes backups." />
        : (
          <form class="form scrolled" onSubmit={submit}>
            <p class="lead">
              One archive with the database, uploaded files and logs. To bring it back, run{" "}
              <code>svc restore</code> on the machine of the service.
            </p>
            <RefusalNotice refusal={refusal} />
            <Tick
              label="Include the signing key: whoever has it can do everything here"
              checked={withKey}
              onChange={setWithKey}
            />
            {withKey && (
              <TextField
                label="Your password"
                name="password"
                type="password"
                value={password}
                onInput={setPassword}
                refusal={refusal}
                autocomplete="current-password"
                required
              />
            )}
            <div class="actions">
              <button type="submit" class="primary" disabled={busy}>
                <Download size={16} aria-hidden="true" /> {busy ? "Making it" : "Make a backup"}
              </button>
            </div>
          </form>
        )}
    </>
  );
}
