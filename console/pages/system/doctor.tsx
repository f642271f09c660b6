import { useGet } from "../../live/resource.ts";
import { Button } from "../../parts/button.tsx";
import { LoadState } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { SystemHead } from "./system_head.tsx";

export function Page() {
  const read = useGet("/api/system/doctor", {});
  return (
    <>
      <SystemHead current="/console/system/doctor">
        <Button press={read.reload}>Check again</Button>
      </SystemHead>
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
