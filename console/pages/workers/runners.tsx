import { Play, Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { useAddress } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { useRunners } from "../../live/runners.ts";
import { Button } from "../../parts/button.tsx";
import { pluralize } from "../../parts/format.ts";
import { FilteredListing, Row } from "../../parts/listing.tsx";
import { Empty, Notice } from "../../parts/notice.tsx";
import { Facts, Heading, Section } from "../../parts/page.tsx";
import { listStatusOptions } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { RunnerDialog } from "./runner.tsx";
import { RunnerForm } from "./runner_form.tsx";

type Runner = Schemas["Runner"];

const STATES = ["online", "silent", "draining"];
// A shorter list needs no filters.
const FILTERS_MIN = 8;

export function Page() {
  const [values, change] = useAddress("find", "state", "runner");
  const { find, state, runner: selectedId } = values;
  const [adding, setAdding] = useState(false);
  const read = useRunners();
  const all = read.data;
  const matches = all?.filter((one) => (state === "" || one.state === state) && includesText(one, find));
  const selected = all?.find(({ id }) => id === selectedId);
  const filtered = find + state !== "";
  const add = (
    <Button class="primary" icon={Plus} press={() => setAdding(true)} scope="write:runners">
      Add runner
    </Button>
  );
  return (
    <>
      <Heading title="Runners">{all?.length !== 0 && add}</Heading>
      <FilteredListing
        bar={all !== undefined && (all.length >= FILTERS_MIN || filtered)}
        filters={[
          { name: "find", label: "Name, label or engine" },
          { name: "state", label: "State", options: listStatusOptions("All states", STATES) },
        ]}
        values={values}
        change={change}
        count={`${matches?.length} of ${all?.length}`}
        keep={["runner"]}
        list={{ ...read, data: matches }}
        label="Runners"
        row={(one) => <RunnerRow runner={one} open={() => change({ runner: one.id })} />}
        empty={
          <Empty title="No runners yet.">
            <p>
              All workers run on the service's machine. A runner is another machine that runs workers, e.g.
              with a GPU or macOS. It needs the <code>svc</code>{" "}
              program, a token and a connection to this service. No port has to be opened.
            </p>
            {add}
          </Empty>
        }
      />
      <Launchers />
      {selected !== undefined && (
        <RunnerDialog
          runner={selected}
          reload={read.reload}
          onClose={() => change({ runner: "" })}
        />
      )}
      {adding && <RunnerForm onClose={() => (setAdding(false), read.reload())} />}
    </>
  );
}

function includesText({ name, labels, engines }: Runner, text: string): boolean {
  return [name, ...labels, ...engines].some((one) => one.toLowerCase().includes(text.toLowerCase()));
}

function RunnerRow({ runner, open }: { runner: Runner; open: () => void }) {
  const { name, labels, state, draining, engines, version, running, max_runs, last_seen_at } = runner;
  return (
    <Row
      press={open}
      status={last_seen_at === null ? "awaited" : state}
      title={name}
      notes={[labels.join(", ") || "no labels", engines.join(", "), version, draining && "draining"]}
      side={last_seen_at === null ? <span>not connected yet</span> : (
        <>
          <span>{running} of {pluralize(max_runs, "run")}</span>
          <span>
            seen <Ago at={last_seen_at} />
          </span>
        </>
      )}
    />
  );
}

/** The launchers of the configuration, or nothing without any. */
function Launchers() {
  const read = useGet("/api/launchers", {}, /^launch(er)?\./);
  const { data = [] } = read;
  if (data.length === 0) return null;
  return (
    <div class="scrolled">
      {data.map((launcher) => (
        <LauncherSection
          key={launcher.name}
          launcher={launcher}
          reload={read.reload}
        />
      ))}
    </div>
  );
}

function LauncherSection({ launcher, reload }: { launcher: Schemas["Launcher"]; reload: () => void }) {
  const { name, labels, max, open, running, paused, failures, retry_at, last_error } = launcher;
  const resume = async () => {
    await load(api.POST("/api/launchers/{name}/resume", { params: { path: { name } } }));
    reload();
  };
  const hasFailed = paused || failures > 0;
  return (
    <Section
      title={`Launcher ${name}`}
      actions={hasFailed && <Button icon={Play} press={resume} scope="write:runners">Resume</Button>}
    >
      {hasFailed && (
        <Notice tone="warn">
          <strong>{paused ? "Paused" : "Waiting"} after {pluralize(failures, "failed start")}.</strong>{" "}
          {last_error}
        </Notice>
      )}
      <Facts
        values={{
          "Labels": labels.join(", "),
          "Jobs": `${running} running, ${open} waiting, at most ${max}`,
          "Next start": !paused && retry_at !== null && retry_at > Date.now() && <Ago at={retry_at} />,
        }}
      />
    </Section>
  );
}
