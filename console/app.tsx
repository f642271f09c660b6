import { useLayoutEffect } from "preact/hooks";
import { Route, Switch } from "wouter-preact";
import { followEvents } from "./live/events.ts";
import { followInbox } from "./live/inbox.ts";
import { reachable, sessionState } from "./live/session.ts";
import { followWorkers } from "./live/workers.ts";
import { Navigation } from "./navigation.tsx";
import { partsOf } from "./live/address.ts";
import { LazyPage, PAGES } from "./pages.tsx";
import { LoginPage } from "./pages/account/login.tsx";
import { Confirmation } from "./parts/dialog.tsx";
import { Empty, Loading } from "./parts/notice.tsx";
import { Toast } from "./parts/toast.tsx";

/** The whole console: the login, or navigation and the page that the address names. */
export function App() {
  const state = sessionState.value;
  if (state === "starting") return reachable.value ? <Loading /> : <Unreachable />;
  if (state === "out") return <LoginPage />;
  return (
    <>
      <div class="app" inert={state === "expired"}>
        <SignedIn />
      </div>
      {/* The page stays behind the login with everything that was typed into it. */}
      {state === "expired" && <LoginPage again />}
      <Confirmation />
      <Toast />
    </>
  );
}

let following = false;

function SignedIn() {
  useLayoutEffect(() => {
    if (following) return;
    following = true;
    followEvents();
    followWorkers();
    followInbox();
  }, []);
  return (
    <>
      <a class="skip" href="#main">To the page</a>
      <Navigation />
      <main id="main">
        <Switch>
          {PAGES.map((page) => (
            <Route key={page.path} path={page.path}>
              {() => <LazyPage page={page} params={partsOf(page.path)} />}
            </Route>
          ))}
          <Route>
            <Empty title="There is no such page.">
              <p>
                <a href="/">Go to the inbox</a>
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
      <Empty title="The service does not answer.">
        <p>This page goes on by itself as soon as it does.</p>
      </Empty>
    </main>
  );
}
