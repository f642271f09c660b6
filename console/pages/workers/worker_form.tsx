import { useLocation } from "wouter-preact";
import type { PageProps } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { useGet, useResource } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Checkbox, splitWords } from "../../parts/field.tsx";
import { Fields, Form, type FormState, useForm } from "../../parts/form.tsx";
import { Empty, LoadState } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { showToast } from "../../parts/toast.tsx";
import { useDepartments } from "./department_tree.ts";
import { readEngineNames } from "./engines.ts";
import { buildRequest, formatField, WORKER_FIELDS } from "./worker_fields.ts";
import { FallbackField } from "./worker_fallback.tsx";
import { GatewayFields } from "./worker_gateways.tsx";
import { buildIsolation, IsolationFields, readIsolation } from "./worker_isolation.tsx";

type Worker = Schemas["Worker"];

/** The values by field name; `departments` holds ids and `gateways` names, separated by spaces. */
type Values = Record<string, string>;

export function Page({ params: { id = "" } }: PageProps) {
  if (!hasScope("write:workers")) return <Empty title="You do not have permission to edit workers." />;
  return id === "" ? <WorkerForm worker={null} /> : <ExistingWorker id={id} />;
}

function ExistingWorker({ id }: { id: string }) {
  const read = useGet("/api/workers/{id}", { path: { id } });
  return read.data === undefined ? <LoadState error={read.error} /> : <WorkerForm worker={read.data} />;
}

function WorkerForm({ worker }: { worker: Worker | null }) {
  const [, navigate] = useLocation();
  const form = useForm<Values>({
    draft: `worker.${worker?.id ?? "new"}`,
    initial: readValues(worker),
    async send(values) {
      const body = buildBody(values, worker);
      const saved = worker === null
        ? await load(api.POST("/api/workers", { body }))
        : await load(api.PUT("/api/workers/{id}", { params: { path: { id: worker.id } }, body }));
      showToast(worker === null ? `${saved.name} created` : "Saved");
      navigate(`/console/workers/${saved.id}`);
    },
  });
  const back = worker === null ? "/console/workers" : `/console/workers/${worker.id}`;
  const listed = WORKER_FIELDS.filter(({ scope, createOnly = false }) =>
    (scope === undefined || hasScope(scope)) && (worker === null || !createOnly)
  );
  const more = listed.filter((field) => field.more === true);
  const filled = [...more.map(({ name }) => name), "isolation", "gateways", "fallback"];
  return (
    <>
      <Heading
        title={worker === null ? "New worker" : `Edit ${worker.name}`}
        above={{ href: back, name: worker === null ? "Workers" : worker.name }}
      />
      <Form form={form} action={worker === null ? "Create worker" : "Save"} cancel={back} page>
        <Fields form={form} fields={listed.filter((field) => field.more !== true)} />
        <EngineField form={form} />
        <DepartmentFields form={form} />
        <details open={form.error !== null || filled.some((name) => form.values[name] !== "")}>
          <summary>More options</summary>
          <Fields form={form} fields={more} />
          {hasScope("write:commands") && <ReachFields form={form} />}
        </details>
      </Form>
    </>
  );
}

function buildBody(values: Values, worker: Worker | null): Schemas["WorkerCreate"] {
  const isolation = buildIsolation(values, worker);
  return {
    ...buildRequest(values, worker),
    ...(isolation === undefined ? {} : { isolation }),
    gateways: splitWords(values.gateways ?? ""),
    fallback: values.fallback === "on",
    engine: values.engine ?? "",
    departments: splitWords(values.departments ?? ""),
  };
}

function readValues(worker: Worker | null): Values {
  return {
    ...Object.fromEntries(
      WORKER_FIELDS.map((field) => [field.name, worker === null ? "" : formatField(field, worker)]),
    ),
    ...readIsolation(worker?.isolation ?? null),
    gateways: worker?.gateways.join(" ") ?? "",
    fallback: worker?.fallback ? "on" : "",
    engine: worker?.engine ?? "",
    departments: worker?.departments.map(({ id }) => id).join(" ") ?? "",
  };
}

function EngineField({ form }: { form: FormState<Values> }) {
  const { engine = "", runs_on = "" } = form.values;
  const labels = splitWords(runs_on);
  const usable = useResource(
    ["engines", ...labels].join(" "),
    (signal) => readEngineNames(labels, signal),
  ).data ?? [];
  const names = engine === "" || usable.includes(engine) ? usable : [engine, ...usable];
  return (
    <Fields
      form={form}
      fields={[{
        name: "engine",
        label: "Engine",
        options: [["", "Default"], ...names.map((name) => [name, name] as const)],
        hint: labels.length === 0
          ? "The program that runs the model. The list has the installed ones"
          : "The program that runs the model. Engines of matching runners are listed",
      }]}
    />
  );
}

function DepartmentFields({ form }: { form: FormState<Values> }) {
  const all = useDepartments().data ?? [];
  if (all.length === 0) return null;
  const selected = splitWords(form.values.departments ?? "");
  const change = (id: string, on: boolean) => {
    const others = selected.filter((one) => one !== id);
    form.set({ departments: (on ? [...others, id] : others).join(" ") });
  };
  return (
    <fieldset>
      <legend>Departments</legend>
      {all.map(({ id, name, depth }) => (
        <div key={id} style={{ paddingInlineStart: `${depth * 20}px` }}>
          <Checkbox label={name} checked={selected.includes(id)} onChange={(on) => change(id, on)} />
        </div>
      ))}
    </fieldset>
  );
}

/** The fields that decide what runs can reach, and which engines do them. The configuration names the gateways and the default isolation. */
function ReachFields({ form }: { form: FormState<Values> }) {
  const settings = useGet("/api/system/config", {}).data?.settings ?? [];
  const fallback = settings.find(({ key }) => key === "isolation.default")?.value ?? "";
  const gateways = settings.flatMap(({ key }) => /^gateways\.([^.]+)\.kind$/.exec(key)?.[1] ?? []);
  return (
    <>
      <IsolationFields form={form} fallback={fallback} />
      <GatewayFields form={form} names={gateways} />
      <FallbackField form={form} />
    </>
  );
}
