import { api, ask, type Schemas } from "../../live/api.ts";
import { now } from "../../live/clock.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { Act } from "../../parts/button.tsx";
import { timeText } from "../../parts/format.ts";
import { Meter } from "../../parts/meter.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";

type Engine = Schemas["Engine"];

/** The programs that think: whether they are here, what their providers allow, and how much of that is used (contract 14). */
export function Engines() {
  const read = useResource(
    "engines",
    (signal) => ask(api.GET("/api/engines", { signal })),
    ({ kind }) => kind.startsWith("engine.") || kind === "execution.completed",
  );
  return (
    <section>
      <h2>Engines</h2>
      {read.data === undefined
        ? <Waiting refusal={read.refusal} />
        : <EngineCards engines={read.data} reload={read.reload} />}
    </section>
  );
}

// Those that are not installed here are many, and of interest once.
function EngineCards({ engines, reload }: { engines: Engine[]; reload: () => void }) {
  const cards = (shown: Engine[]) => (
    <ul class="cards">
      {shown.map((engine) => <EngineCard key={engine.name} engine={engine} reload={reload} />)}
    </ul>
  );
  const others = engines.filter(({ usable }) => !usable);
  return (
    <>
      {cards(engines.filter(({ usable }) => usable))}
      {others.length > 0 && (
        <details class="others">
          <summary>{others.length} more that cannot be used here</summary>
          {cards(others)}
        </details>
      )}
    </>
  );
}

function EngineCard({ engine, reload }: { engine: Engine; reload: () => void }) {
  const { name, usable, version, detail, windows, limited_until } = engine;
  const limited = limited_until !== null && limited_until > now.value;
  async function lift(): Promise<void> {
    await attempt(
      () => ask(api.POST("/api/engines/{name}/lift", { params: { path: { name } } })),
      `${name} goes on`,
    );
    reload();
  }
  return (
    <li class="card">
      <div class="card-head">
        <h3>{name}</h3>
        <Status of={limited ? "limited" : usable ? "ok" : "missing"} />
      </div>
      <p class="quiet">
        {[engine.default ? "the default" : "", version].filter(Boolean).join(", ")}
        {!usable && detail}
      </p>
      {windows.map((window) => (
        <div key={window.name}>
          <Meter
            label={`${name}, ${window.name}`}
            part={window.utilization}
            text={`${Math.round(window.utilization * 100)} %`}
            state={window.utilization >= 1 ? "hard" : window.utilization >= 0.8 ? "soft" : "ok"}
          />
          <p>
            {window.name.replaceAll("_", " ")}: {Math.round(window.utilization * 100)} %{" "}
            <span class="quiet">
              {window.resets_at !== null && (
                <>
                  anew <Ago at={window.resets_at} />,{" "}
                </>
              )}
              seen <Ago at={window.seen_at} />
            </span>
          </p>
        </div>
      ))}
      {limited && (
        <>
          <p class="hint">
            Its provider lets nothing through until {timeText(limited_until)}; its tasks wait.
          </p>
          {may("write:engines") && (
            <div class="actions">
              <Act
                class="small"
                label={`Try again now: ${name}`}
                run={() => lift()}
              >
                Try again now
              </Act>
            </div>
          )}
        </>
      )}
    </li>
  );
}
