import type { ApiError } from "../../live/api_error.ts";
import type { Schemas } from "../../live/api.ts";
import { type Options, splitWords } from "../../parts/field.tsx";
import { Fields, type FormState } from "../../parts/form.tsx";
import type { NamedFacts } from "../../parts/page.tsx";

type Worker = Schemas["Worker"];
type Isolation = Worker["isolation_effective"];
type Values = Record<string, string>;
type Box = Extract<Isolation, { box: unknown }>["box"];

const NETWORK = "isolation.box.network";
const HOSTS = "isolation.box.hosts";
const READ = "isolation.box.read";
const WRITE = "isolation.box.write";

const NETWORKS: Options = [
  ["", "Default: the engine's provider"],
  ["hosts", "Named hosts"],
  ["none", "None: only the service and its gateways"],
  ["host", "The network of the machine"],
];

/** Returns the values of the form's fields. */
export function readIsolation(isolation: Worker["isolation"]): Values {
  const { network, read = [], write = [] } = findBox(isolation ?? "namespace") ?? {};
  return {
    isolation: isolation === null ? "" : isolation === "namespace" ? "namespace" : "box",
    [NETWORK]: Array.isArray(network) ? "hosts" : network ?? "",
    [HOSTS]: Array.isArray(network) ? network.join(" ") : "",
    [READ]: read.join("\n"),
    [WRITE]: write.join("\n"),
  };
}

/** Returns the isolation of the form, or undefined if it is unchanged. Limits that the form does not show are kept. */
export function buildIsolation(values: Values, before: Worker | null): Worker["isolation"] | undefined {
  const old = before?.isolation ?? null;
  if (Object.entries(readIsolation(old)).every(([name, value]) => values[name] === value)) return undefined;
  if (values.isolation === "") return null;
  if (values.isolation === "namespace") return "namespace";
  const { network: _network, read: _read, write: _write, ...limits } = findBox(old ?? "namespace") ?? {};
  const [read, write] = [READ, WRITE].map((name) => splitLines(values[name] ?? ""));
  const box = {
    ...limits,
    ...buildNetwork(values),
    ...(read?.length ? { read } : {}),
    ...(write?.length ? { write } : {}),
  };
  return Object.keys(box).length === 0 ? "box" : { box };
}

function buildNetwork({ [NETWORK]: network = "", [HOSTS]: hosts = "" }: Values): Pick<Box, "network"> {
  if (network === "hosts") return { network: splitWords(hosts) };
  return network === "host" || network === "none" ? { network } : {};
}

function splitLines(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

function findBox(isolation: Isolation): Box | null {
  if (isolation === "namespace") return null;
  return isolation === "box" ? {} : isolation.box;
}

export function IsolationFields({ form, fallback }: { form: FormState<Values>; fallback: string }) {
  const { isolation, [NETWORK]: network } = form.values;
  return (
    <>
      <Fields
        form={{ ...form, error: omitBoxErrors(form.error) }}
        fields={[{
          name: "isolation",
          label: "Isolation",
          options: [
            ["", `Default${fallback && ` (${fallback})`}`],
            ["namespace", "Namespace: sees only the processes of its run"],
            ["box", "Box: no other files and processes"],
          ],
          hint: "In a box, a run sees its own directory, its engine and the system's programs",
        }]}
      />
      {isolation === "box" && (
        <Fields
          form={form}
          fields={[
            { name: NETWORK, label: "Network of the box", options: NETWORKS },
            network === "hosts" && {
              name: HOSTS,
              label: "Hosts",
              placeholder: "api.example.org *.example.net",
              required: true,
            },
            {
              name: READ,
              label: "Readable paths",
              rows: 2,
              hint: "More paths, one per line. isolation.box.read in config.yaml must allow them",
            },
            {
              name: WRITE,
              label: "Writable paths",
              rows: 2,
              hint: "More paths, one per line. isolation.box.write in config.yaml must allow them",
            },
          ]}
        />
      )}
    </>
  );
}

// The fields of the box show these errors.
function omitBoxErrors(error: ApiError | null): ApiError | null {
  return error?.errors.some(({ path }) => path.startsWith("isolation.box.")) ? null : error;
}

/** Lists the isolation that is in effect, with the options of a box. */
export function listIsolation({ isolation, isolation_effective }: Worker): NamedFacts {
  const box = findBox(isolation_effective);
  const { network, read = [], write = [], memory, pids, cpu } = box ?? {};
  const limits = [memory && `${memory} memory`, pids && `${pids} processes`, cpu && `${cpu} CPUs`];
  return {
    Isolation: (
      <>
        {box === null ? "namespace" : "box"} {isolation === null && <span class="quiet">(default)</span>}
      </>
    ),
    "Network of the box": box !== null && formatNetwork(network),
    "Readable paths": read.join(", "),
    "Writable paths": write.join(", "),
    "Limits of the box": limits.filter(Boolean).join(", "),
  };
}

function formatNetwork(network: Box["network"]): string {
  if (Array.isArray(network)) return network.join(", ") || "none";
  if (network === "host") return "the network of the machine";
  return network ?? "default";
}
