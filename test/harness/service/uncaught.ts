// Runs `svc serve` and throws an uncaught error as soon as a file exists: `uncaught.ts <file> <how>`.
import { serve } from "../../../src/boot/serve.ts";

const [file = "", how = ""] = Deno.args;
const secret = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJl";
const timer = setInterval(() => {
  try {
    Deno.statSync(file);
  } catch {
    return;
  }
  clearInterval(timer);
  const error = new Error(`broken at ?token=${secret}`, { cause: new TypeError("the cause") });
  if (how === "throw") throw error;
  if (how === "text") void Promise.reject(`only words, ${secret}`);
  else void Promise.reject(error);
}, 20);
Deno.exit(await serve([]));
