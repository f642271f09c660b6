import { render } from "preact";
import { App } from "./app.tsx";
import { startSession } from "./live/session.ts";

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
void startSession();
