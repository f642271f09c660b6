// Runs `svc serve` with short leases, for a torture with runners.
import { serve } from "../../src/boot/serve.ts";
import { SHORT_LEASES } from "./leases.ts";

Deno.exit(await serve(Deno.args.slice(1), { leaseTimes: SHORT_LEASES }));
