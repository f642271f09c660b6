import { useLayoutEffect } from "preact/hooks";
import { Route, Switch } from "wouter-preact";
import { readPathParams } from "./live/address.ts";
import { openEventStream } from "./live/events.ts";
import { followInbox } from "./live/inbox.ts";
import { reachable, sessionState } from "./live/session.ts";
import { followWorkers } from "./live/workers.ts";
import { Navigation } from "./navigation.tsx";
import { PaletteHost } from "./palette.tsx";
import { LazyPage, PAGES } from "./pages.tsx";
import { LoginPage } from "./pages/account/login.tsx";
import { OfferedLogin } from "./pages/account/offered_login.tsx";
import { ConfirmationDialog } from "./parts/dialog.tsx";
import { Empty, Loading } from "./parts/notice.tsx";
import { Shortcuts } from "./shortcuts.tsx";
import { Toast } from "./parts/toast.tsx";

export function App() {
  const state = sessionState.value;
  if (state === "starting") return reachable.value ? <Loading /> : <Unreachable />;
  if (state === "out") return <LoginPage />;
  return (
    <>
      <div class="app" inert={state === "expired"}>
        <SignedIn />
      </div>
      {/* The page stays mounted under the login, so that it keeps its state. */}
      {state === "expired" && <LoginPage again />}
      <ConfirmationDialog />
      <OfferedLogin />
      {state === "in" && <Shortcuts />}
      {state === "in" && <PaletteHost />}
      <Toast />
    </>
  );
}

let following = false;

function SignedIn() {
  useLayoutEffect(() => {
    if (following) return;
    following = true;
    openEventStream();
    followWorkers();
    followInbox();
  }, []);
  return (
    <>
      <a class="skip" href="#main">Skip to content</a>
      <Navigation />
      <main id="main">
        <Switch>
          {PAGES.map((route) => (
            <Route key={route.path} path={route.path}>
              {() => <LazyPage route={route} params={readPathParams(route.path)} />}
            </Route>
          ))}
          <Route>
            <Empty title="Page not found.">
              <p>
                <a href="/">Open the inbox</a>
              </p>
            </Empty>
          </Route>
        </Switch>
      </main>
    </>
  );
}

function Unreachable() {
  return (
    <main class="login">
      <Empty title="The service does not respond.">
        <p>This page reconnects automatically.</p>
      </Empty>
    </main>
  );
}
