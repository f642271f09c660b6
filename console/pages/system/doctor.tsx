import { api, ask } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { Heading } from "../../parts/page.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { SystemTabs } from "./system_tabs.tsx";

/** Each check of the service, and the way out when something is not well (contract 17). */
export function DoctorPage() {
  const read = useResource("doctor", (signal) => ask(api.GET("/api/system/doctor", { signal })));
  return (
    <>
      <Heading title="System">
        <button type="button" onClick={read.reload}>Check again</button>
      </Heading>
      <SystemTabs current="/console/system/doctor" />
      {read.data === undefined
        ? <Waiting refusal={read.refusal} />
        : (
          <ul class="checks scrolled" tabIndex={0}>
            {read.data.checks.map(({ name, status, detail, hint }) => (
              <li key={name}>
                <Status of={status} />
                <div>
                  <h2>{name.replaceAll("_", " ")}</h2>
                  <p>{detail}</p>
                  {hint !== "" && <p class="hint">{hint}</p>}
                </div>
              </li>
            ))}
          </ul>
        )}
    </>
  );
}
