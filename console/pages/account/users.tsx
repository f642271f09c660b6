import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { api, load, type Schemas } from "../../live/api.ts";
import { useList } from "../../live/resource.ts";
import { hasScope, username } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { FormDialog, useForm } from "../../parts/form.tsx";
import { Listing, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Ago } from "../../parts/time.tsx";
import { showToast } from "../../parts/toast.tsx";
import { SystemHead } from "../system/system_head.tsx";

type User = Schemas["User"];

export function Page() {
  const [edited, setEdited] = useState<User | "new" | null>(null);
  const list = useList("/api/users", {}, /^user\.|^auth\.login$/);
  function close(): void {
    setEdited(null);
    list.reload();
  }
  return (
    <>
      <SystemHead current="/console/system/users">
        <Button class="primary" icon={Plus} press={() => setEdited("new")} scope="write:users">
          New user
        </Button>
      </SystemHead>
      <Listing
        list={list}
        label="Users"
        row={(user) => <UserRow user={user} edit={() => setEdited(user)} />}
        empty={<Empty title="No users yet." />}
      />
      {edited === "new"
        ? <NewUserForm onClose={close} />
        : edited !== null && <UserForm user={edited} onClose={close} />}
    </>
  );
}

const ORIGINS: Partial<Record<User["origin"], string>> = {
  operator: "from the configuration",
  oidc: "OpenID",
};

function UserRow({ user, edit }: { user: User; edit: () => void }) {
  const { name, role, disabled, origin, last_login_at } = user;
  // The configuration defines the operator.
  const editable = hasScope("write:users") && origin !== "operator";
  return (
    <Row
      {...(editable ? { press: edit } : {})}
      status={disabled ? "disabled" : "active"}
      title={name}
      notes={[role, name === username.value && "you", ORIGINS[origin]]}
      side={
        <>
          <span>{last_login_at === null ? "never signed in" : "signed in"}</span>
          {last_login_at !== null && <Ago at={last_login_at} />}
        </>
      }
    />
  );
}

const ROLES: Record<User["role"], string> = {
  viewer: "viewer: can see everything except other users' tokens",
  operator: "operator: also chats, answers questions, runs and cancels tasks",
  admin: "admin: full access",
};

/** Creates a user, and shows a generated password. */
function NewUserForm({ onClose }: { onClose: () => void }) {
  const [created, setCreated] = useState<{ name: string; password: string } | null>(null);
  const form = useForm({
    initial: { name: "", role: "operator", password: "" },
    async send(values) {
      const body = {
        name: values.name,
        role: values.role as User["role"],
        ...(values.password === "" ? {} : { password: values.password }),
      };
      const { name, password } = await load(api.POST("/api/users", { body }));
      if (password !== undefined) return setCreated({ name, password });
      showToast(`${name} can sign in`);
      onClose();
    },
  });
  return (
    <FormDialog
      form={form}
      title="New user"
      action="Create user"
      onClose={onClose}
      secret={created && {
        title: `Password of ${created.name}`,
        text: `${created.name} signs in with this name and this password.`,
        secret: created.password,
      }}
      fields={[
        { name: "name", label: "Name", autocomplete: "off", required: true, autofocus: true },
        { name: "role", label: "Role", options: Object.entries(ROLES) },
        {
          name: "password",
          label: "Password",
          type: "password",
          autocomplete: "new-password",
          hint: "Leave empty to generate one. The page shows it once",
        },
      ]}
    />
  );
}

function UserForm({ user, onClose }: { user: User; onClose: () => void }) {
  const params = { path: { id_or_name: user.id } };
  const form = useForm({
    initial: { role: user.role as string, disabled: user.disabled, password: "" },
    async send({ role, disabled, password }) {
      if (role !== user.role || disabled !== user.disabled) {
        const body = { role: role as User["role"], disabled };
        await load(api.PUT("/api/users/{id_or_name}", { params, body }));
      }
      if (password !== "") {
        await load(api.PUT("/api/users/{id_or_name}/password", { params, body: { password } }));
      }
      onClose();
    },
  });
  return (
    <FormDialog
      form={form}
      title={user.name}
      action="Save"
      onClose={onClose}
      fields={[
        { name: "role", label: "Role", options: Object.entries(ROLES) },
        { name: "disabled", label: "Sign-in disabled", type: "checkbox" },
        // Users change their own password on the account page, which asks for the current one.
        user.origin !== "oidc" && user.name !== username.value && {
          name: "password",
          label: "New password",
          type: "password",
          autocomplete: "new-password",
          hint: "Leave it empty to keep the password. A new password ends the user's sessions",
        },
      ]}
      remove={{
        question: {
          title: `Delete ${user.name}?`,
          text: "The account, its tokens and its sessions end immediately. The events keep its actions.",
          action: "Delete user",
        },
        run: () => load(api.DELETE("/api/users/{id_or_name}", { params })),
        after: onClose,
      }}
    />
  );
}
