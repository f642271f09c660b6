import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { api, load, type Schemas } from "../../live/api.ts";
import { ApiError } from "../../live/api_error.ts";
import { useAll } from "../../live/resource.ts";
import { findWorkerName, listWorkerOptions } from "../../live/workers.ts";
import { Button } from "../../parts/button.tsx";
import { Checkbox } from "../../parts/field.tsx";
import { FormDialog, useForm } from "../../parts/form.tsx";
import { Listing, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Ago } from "../../parts/time.tsx";
import { showToast } from "../../parts/toast.tsx";
import { SystemHead } from "../system/system_head.tsx";

type Secret = Schemas["Secret"];

export function Page() {
  const [edited, setEdited] = useState<Secret | "new" | null>(null);
  const list = useAll("/api/secrets", {}, /^secret\.|^worker\./);
  function close(): void {
    setEdited(null);
    list.reload();
  }
  return (
    <>
      <SystemHead current="/console/system/secrets">
        <Button class="primary" icon={Plus} press={() => setEdited("new")}>New secret</Button>
      </SystemHead>
      <Listing
        list={list}
        label="Secrets"
        row={(secret) => <SecretRow secret={secret} edit={() => setEdited(secret)} />}
        empty={
          <Empty title="No secrets yet.">
            <p>A secret is an encrypted value, such as an API key, for the workers that you choose.</p>
          </Empty>
        }
      />
      {edited !== null && (
        <SecretForm
          secret={edited === "new" ? null : edited}
          taken={list.data?.map(({ name }) => name) ?? []}
          onClose={close}
        />
      )}
    </>
  );
}

function SecretRow({ secret, edit }: { secret: Secret; edit: () => void }) {
  const { name, workers, used_by, lost, last_used_at } = secret;
  return (
    <Row
      press={edit}
      status={lost ? "lost" : "active"}
      title={name}
      notes={[
        lost && "encrypted with another key: set it again",
        workers.length === 0 ? "no workers" : workers.map(formatWorker).join(", "),
        used_by.length > 0 && `used by ${used_by.map(formatUser).join(", ")}`,
      ]}
      side={
        <>
          <span>{last_used_at === null ? "never used" : "last used"}</span>
          {last_used_at !== null && <Ago at={last_used_at} />}
        </>
      }
    />
  );
}

function formatWorker(id: string): string {
  return findWorkerName(id) || id;
}

// Other users than workers are named by kind and name, such as platform:tg.
function formatUser(user: string): string {
  return user.startsWith("worker:") ? formatWorker(user.slice("worker:".length)) : user;
}

const NAME_TAKEN = new ApiError(409, "conflict", "Cannot create the secret: another one has this name.", [
  { path: "name", message: "is taken" },
]);

interface SecretFormProps {
  secret: Secret | null;
  /** The names of all secrets. */
  taken: readonly string[];
  onClose: () => void;
}

/** Sets the value of a secret and the workers that may use it. The service never returns the value. */
function SecretForm({ secret, taken, onClose }: SecretFormProps) {
  const [workers, setWorkers] = useState<readonly string[]>(secret?.workers ?? []);
  const form = useForm({
    initial: { name: secret?.name ?? "", value: "" },
    async send({ name, value }) {
      // The request would replace the value of the other secret.
      if (secret === null && taken.includes(name)) throw NAME_TAKEN;
      const changed = workers.join() !== (secret?.workers ?? []).join();
      const body = { ...(value === "" ? {} : { value }), ...(changed ? { workers: [...workers] } : {}) };
      if (secret === null || Object.keys(body).length > 0) {
        await load(api.PUT("/api/secrets/{name}", { params: { path: { name } }, body }));
        showToast(`${name} saved`);
      }
      onClose();
    },
  });
  return (
    <FormDialog
      form={form}
      title={secret?.name ?? "New secret"}
      action={secret === null ? "Create secret" : "Save"}
      onClose={onClose}
      fields={[
        secret === null && {
          name: "name",
          label: "Name",
          autocomplete: "off",
          placeholder: "github-token",
          required: true,
          autofocus: true,
        },
        {
          name: "value",
          label: secret === null ? "Value" : "New value",
          type: "password",
          autocomplete: "new-password",
          required: secret === null,
          hint: describeValue(secret),
        },
      ]}
      below={<WorkerChoice chosen={workers} change={setWorkers} />}
      {...(secret === null ? {} : { remove: buildRemoval(secret, onClose) })}
    />
  );
}

function describeValue(secret: Secret | null): string {
  const restart = secret?.used_by.some((user) => user.startsWith("platform:"));
  return [
    ...(secret === null ? [] : ["Leave empty to keep the value."]),
    ...(restart ? ["Platforms use a new value after a restart of the service."] : []),
    "The console never shows it. For several lines, use svc ctl secret set --file",
  ].join(" ");
}

function buildRemoval({ name, used_by }: Secret, after: () => void) {
  const users = used_by.map(formatUser).join(", ");
  return {
    question: {
      title: `Delete ${name}?`,
      text: users === ""
        ? "The value is lost. Nothing uses it."
        : `The value is lost. It is needed by ${users}.`,
      action: "Delete secret",
    },
    run: () => load(api.DELETE("/api/secrets/{name}", { params: { path: { name } } })),
    after,
  };
}

interface WorkerChoiceProps {
  chosen: readonly string[];
  change: (ids: readonly string[]) => void;
}

function WorkerChoice({ chosen, change }: WorkerChoiceProps) {
  const options = listWorkerOptions();
  if (options.length === 0) return null;
  return (
    <fieldset class="choices">
      <legend>Workers that may use it</legend>
      {options.map(([id, name]) => (
        <div key={id}>
          <Checkbox
            label={name}
            checked={chosen.includes(id)}
            onChange={(on) => change(on ? [...chosen, id] : chosen.filter((one) => one !== id))}
          />
        </div>
      ))}
    </fieldset>
  );
}
