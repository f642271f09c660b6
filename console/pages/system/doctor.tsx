import { useGet } from "../../live/resource.ts";
import { Button } from "../../parts/button.tsx";
import { LoadState } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { SystemTabs } from "./system_tabs.tsx";

/** The checks of the service, with a way out for each problem. */
export function Page() {
  const read = useGet("/api/system/doctor", {});
  return (
    <>
      <Heading title="System">
        <Button press={read.reload}>Check again</Button>
      </Heading>
      <SystemTabs current="/console/system/doctor" />
      {read.data === undefined ? <LoadState error={read.error} /> : (
        <ul class="checks scrolled" tabIndex={0}>
          {read.data.checks.map(({ name, status, detail, hint }) => (
            <li key={name}>
              <Status value={status} />
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
