import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { api, askPage } from "../../live/api.ts";
import { useList } from "../../live/resource.ts";
import { may, username } from "../../live/session.ts";
import { Heading } from "../../parts/page.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { SecretOnce } from "../../parts/secret.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { SystemTabs } from "../system/system_tabs.tsx";
import { type Made, NewUser, type User, UserForm } from "./user_form.tsx";

const PAGE_SIZE = 100;

/** Who may sign in, and as what (contract 9). */
export function UsersPage() {
  const [edited, setEdited] = useState<User | "new" | null>(null);
  const [made, setMade] = useState<Made | null>(null);
  const list = useList<User>("users", (cursor, signal) => {
    const query = cursor === undefined ? { page_size: PAGE_SIZE } : { page_size: PAGE_SIZE, cursor };
    return askPage(api.GET("/api/users", { params: { query }, signal }));
  }, ({ kind }) => kind.startsWith("user.") || kind === "auth.login");
  function close(secret?: Made): void {
    setEdited(null);
    if (secret !== undefined) setMade(secret);
    list.reload();
  }
  return (
    <>
      <Heading title="System">
        {may("write:users") && (
          <button type="button" class="primary" onClick={() => setEdited("new")}>
            <Plus size={16} aria-hidden="true" /> New person
          </button>
        )}
      </Heading>
      <SystemTabs current="/console/system/users" />
      <Listing
        list={list}
        label="People"
        row={(user) => <UserRow user={user} edit={() => setEdited(user)} />}
        empty={<Empty title="Nobody has an account yet." />}
      />
      {edited === "new"
        ? <NewUser onClose={close} />
        : edited !== null && <UserForm user={edited} onClose={close} />}
      {made !== null && (
        <SecretOnce
          title={`The password of ${made.name}`}
          text={`${made.name} signs in with this name and this password.`}
          secret={made.password}
          onClose={() => setMade(null)}
        />
      )}
    </>
  );
}

function UserRow({ user, edit }: { user: User; edit: () => void }) {
  const { name, role, disabled, origin, last_login_at } = user;
  const notes: string[] = [role];
  if (name === username.value) notes.push("that is you");
  if (origin === "operator") notes.push("named in the configuration");
  if (origin === "oidc") notes.push("signs in with OpenID");
  const shown = (
    <>
      <Status of={disabled ? "disabled" : "active"} bare />
      <span class="row-main">
        <span class="row-title">{name}</span>
        <span class="row-note">{notes.join(" · ")}</span>
      </span>
      <span class="row-side">
        <span>{last_login_at === null ? "never signed in" : "signed in"}</span>
        {last_login_at !== null && <Ago at={last_login_at} />}
      </span>
    </>
  );
  // The operator is as the configuration says; nothing can be changed here.
  if (!may("write:users") || origin === "operator") return <div class="row">{shown}</div>;
  return <button type="button" class="row" onClick={edit}>{shown}</button>;
}
