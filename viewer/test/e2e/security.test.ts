/** Each rule of src/main/security, attacked from within the page as a script would that got into it. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import policy from "../../src/contract/policy.json";
import { attackedWindow, elsewhere, inPage, viewer } from "./attacked-window";
import { VIEWER, withViewer } from "./launch";

attackedWindow();

describe("nothing remote is loaded, and no script that is not the viewer's (security/content.ts)", () => {
  test("the page's policy and the header's are one", () => {
    expect(readFileSync(join(VIEWER, "dist/index.html"), "utf8")).toContain(
      `content="${policy.directives.join("; ")}"`,
    );
    expect(policy.directives).toContain("script-src 'self'");
    expect(policy.directives.join()).not.toMatch(/unsafe-eval|https?:|\*/);
  });

  test("no name leads anywhere, for Electron's own services neither (security/offline.ts)", async () => {
    const told = await viewer.app.evaluate(
      ({ net, session }, to) =>
        new Promise<string>((done) => {
          // One whose requests nothing refuses.
          const request = net.request({ url: to, session: session.fromPartition("services") });
          request.on("response", () => done("answered"));
          request.on("error", (error) => done(error.message));
          request.end();
        }),
      elsewhere,
    );
    expect(told).toBe("net::ERR_NAME_NOT_RESOLVED");
  });

  test("no request leaves", async () => {
    expect(await inPage((to) => fetch(to))).toBe("refused: TypeError");
    expect(
      await inPage(
        (to) =>
          new Promise((done) => {
            const request = new XMLHttpRequest();
            request.onerror = () => done("refused");
            request.onload = () => done("loaded");
            request.open("GET", to);
            request.send();
          }),
      ),
    ).toBe("refused");
    expect(
      await inPage(
        (to) =>
          new Promise((done) => {
            const socket = new WebSocket(to.replace("http", "ws"));
            socket.onerror = () => done("refused");
            socket.onopen = () => done("open");
          }),
      ),
    ).toMatch(/^refused/);
    expect(
      await inPage(
        (to) =>
          new Promise((done) => {
            const events = new EventSource(to);
            events.onerror = () => done("refused");
            events.onopen = () => done("open");
          }),
      ),
    ).toMatch(/^refused/);
    await inPage((to) => navigator.sendBeacon(to, "x"));
  });

  test.each([
    "img",
    "script",
    "iframe",
    "embed",
    "object",
    "link",
    "video",
    "style",
  ])("no <%s> from elsewhere, nor of a file of this machine", async (name) => {
    for (const to of [elsewhere, "file:///etc/passwd"]) {
      const loaded = await viewer.page.evaluate(
        ([tag, url]) =>
          new Promise((done) => {
            const element = document.createElement(tag) as HTMLImageElement;
            if (tag === "link") Object.assign(element, { rel: "stylesheet", href: url });
            else if (tag === "object") Object.assign(element, { data: url });
            else if (tag === "style")
              element.textContent = `@import url("${url}"); body { background: url("${url}/b") }`;
            else element.src = url;
            element.onerror = () => done("refused");
            // A frame that was refused still fires load: with a page that says so, in an origin of its own.
            element.onload = () => done(tag === "iframe" || tag === "style" || tag === "object" ? "refused" : "loaded");
            document.body.append(element);
            setTimeout(() => done("refused"), 300);
          }),
        [name, to] as const,
      );
      expect(loaded).toBe("refused");
    }
    expect(
      viewer.page
        .frames()
        .map((frame) => frame.url())
        .filter((url) => /passwd|127\.0\.0\.1/.test(url)),
    ).toEqual([]);
    await viewer.page.evaluate(
      (tag) => document.querySelectorAll(`body > ${tag}`).forEach((each) => void each.remove()),
      name,
    );
  });

  test("no text becomes a script", async () => {
    // biome-ignore lint/security/noGlobalEval: what must not work
    expect(await inPage(() => eval("1 + 1"))).toBe("refused: EvalError");
    expect(await inPage(() => new Function("return 1")())).toBe("refused: EvalError");
    expect(await inPage(() => Reflect.construct((async () => {}).constructor, ["return 1"])())).toBe(
      "refused: EvalError",
    );
    expect(await inPage(() => new Worker(URL.createObjectURL(new Blob(["1"]))))).toMatch(/^refused/);
    const ran = await inPage(async () => {
      const spoil = "window.spoiled = true";
      const script = document.createElement("script");
      script.textContent = spoil;
      document.body.append(script);
      const place = document.createElement("div");
      place.innerHTML = `<img src="x:" onerror="${spoil}"><svg onload="${spoil}"></svg><a href="javascript:${spoil}">a</a>`;
      document.body.append(place);
      place.querySelector("a")?.click();
      const data = document.createElement("script");
      data.src = `data:text/javascript,${spoil}`;
      document.body.append(data);
      const blob = document.createElement("script");
      blob.src = URL.createObjectURL(new Blob([spoil], { type: "text/javascript" }));
      document.body.append(blob);
      await Promise.all([data, blob].map((each) => new Promise((done) => (each.onerror = each.onload = done))));
      for (const each of [script, place, data, blob]) each.remove();
      return "spoiled" in window;
    });
    expect(ran).toBe(false);
  });

  test("a form goes nowhere", async () => {
    await inPage((to) => {
      const form = document.createElement("form");
      Object.assign(form, { action: to, method: "post" });
      document.body.append(form);
      form.submit();
      form.remove();
    });
  });

  test("the header says the same where the page does not", async () => {
    const bare = mkdtempSync(join(tmpdir(), "overlaylab-bare-"));
    cpSync(join(VIEWER, "dist"), join(bare, "dist"), { recursive: true });
    cpSync(join(VIEWER, "package.json"), join(bare, "package.json"));
    symlinkSync(join(VIEWER, "node_modules"), join(bare, "node_modules"));
    const page = join(bare, "dist/index.html");
    writeFileSync(page, readFileSync(page, "utf8").replace(/<meta http-equiv[^>]*>/, ""));
    await withViewer({ viewer: bare, expected: [/Content Security Policy/] }, async (other) => {
      const [evaluated, fetched] = await other.page.evaluate(
        (to) =>
          new Promise<string[]>((done) => {
            setTimeout(async () => {
              const say = (act: () => unknown) =>
                Promise.resolve()
                  .then(act)
                  .then(
                    () => "done",
                    (error: Error) => error.name,
                  );
              // biome-ignore lint/security/noGlobalEval: what must not work
              done([await say(() => globalThis.eval("1")), await say(() => fetch(to))]);
            });
          }),
        elsewhere,
      );
      expect([evaluated, fetched]).toEqual(["EvalError", "TypeError"]);
    });
    rmSync(bare, { recursive: true, force: true });
  });
});

describe("the window shows our page and no other, and opens none (security/navigation.ts)", () => {
  test("window.open gives nothing", async () => {
    expect(await inPage((to) => window.open(to))).toBeNull();
    expect(await inPage(() => window.open("about:blank"))).toBeNull();
    expect(await inPage(() => window.open("file:///etc/passwd"))).toBeNull();
  });

  test("location, links and refreshes lead nowhere", async () => {
    for (const to of [elsewhere, "file:///etc/passwd", "data:text/html,<p>x"]) {
      await viewer.page.evaluate((url) => {
        const link = document.createElement("a");
        link.href = url;
        document.body.append(link);
        link.click();
        link.target = "_blank";
        link.click();
        link.remove();
        const refresh = document.createElement("meta");
        Object.assign(refresh, { httpEquiv: "refresh", content: `0;url=${url}` });
        document.head.append(refresh);
        refresh.remove();
        setTimeout(() => (location.href = url));
      }, to);
      // A navigation that was begun would have taken the page away from under this.
      await viewer.page.evaluate(() => new Promise((done) => setTimeout(() => requestAnimationFrame(done), 100)));
      expect(viewer.page.url()).toMatch(/index\.html$/);
    }
    expect(await viewer.page.textContent("h1")).toBe("overlaylab");
  });

  test("from about:blank, before which nobody is asked, the window comes back", async () => {
    await viewer.page.evaluate(() => setTimeout(() => (location.href = "about:blank"))).catch(() => undefined);
    await viewer.page.waitForURL("about:blank");
    await viewer.page.waitForURL(/index\.html$/);
    await viewer.page.waitForSelector("main table");
  });

  test("there is no webview", async () => {
    expect(await inPage(() => "loadURL" in document.body.appendChild(document.createElement("webview")))).toBe(false);
    await viewer.page.evaluate(() => document.querySelector("webview")?.remove());
  });
});

describe("nothing is permitted (security/permissions.ts)", () => {
  test("neither place, nor notice, nor camera, nor clipboard", async () => {
    expect(
      await inPage(
        () =>
          new Promise((done) =>
            navigator.geolocation.getCurrentPosition(
              () => done("given"),
              ({ code }) => done(code),
            ),
          ),
      ),
    ).toBe(1);
    expect(await inPage(() => Notification.requestPermission())).toBe("denied");
    expect(await inPage(() => navigator.mediaDevices.getUserMedia({ audio: true }))).toMatch(/^refused/);
    expect(await inPage(() => navigator.clipboard.readText())).toMatch(/^refused/);
    expect(await inPage(() => document.body.requestPointerLock?.() ?? "none")).toMatch(/none|refused/);
    for (const name of [
      "geolocation",
      "notifications",
      "camera",
      "microphone",
      "clipboard-read",
      "midi",
      "persistent-storage",
    ]) {
      const state = await viewer.page.evaluate(
        (asked) => navigator.permissions.query({ name: asked as PermissionName }).then((found) => found.state),
        name,
      );
      expect([name, state]).toEqual([name, "denied"]);
    }
  });

  test("nothing is downloaded", async () => {
    const before = readdirSync(viewer.userData).length;
    await viewer.app.evaluate(({ session }) => {
      const told = globalThis as unknown as { downloads: boolean[] };
      told.downloads = [];
      // After the viewer's own listener: it sees what that one decided.
      session.defaultSession.on("will-download", (event) => told.downloads.push(event.defaultPrevented));
    });
    await inPage(() => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob(["x"]));
      link.download = "evil.sh";
      document.body.append(link);
      link.click();
      link.remove();
    });
    await expect
      .poll(() => viewer.app.evaluate(() => (globalThis as unknown as { downloads: boolean[] }).downloads))
      .toEqual([true]);
    expect(readdirSync(viewer.userData).length).toBeLessThanOrEqual(before + 1);
  });
});

describe("the page is a page and nothing more (security/preferences.ts)", () => {
  test("there is no Node in it", async () => {
    expect(
      await inPage(() =>
        ["require", "process", "module", "Buffer", "global", "ipcRenderer", "electron"].filter(
          (name) => name in window,
        ),
      ),
    ).toEqual([]);
  });

  test("its process is in the sandbox, isolated, and asked for nothing else", async () => {
    const told = await viewer.app.evaluate(({ BrowserWindow }) => {
      const [window] = BrowserWindow.getAllWindows();
      const contents = window?.webContents as unknown as {
        getOSProcessId(): number;
        getLastWebPreferences(): Record<string, unknown>;
      };
      const {
        sandbox,
        contextIsolation,
        nodeIntegration,
        webSecurity,
        webviewTag,
        allowRunningInsecureContent,
        experimentalFeatures,
      } = contents.getLastWebPreferences();
      return {
        pid: contents.getOSProcessId(),
        preferences: {
          sandbox,
          contextIsolation,
          nodeIntegration,
          webSecurity,
          webviewTag,
          allowRunningInsecureContent,
          experimentalFeatures,
        },
      };
    });
    expect(told.preferences).toEqual({
      sandbox: true,
      contextIsolation: true,
      nodeIntegration: false,
      webSecurity: true,
      webviewTag: false,
      allowRunningInsecureContent: false,
      experimentalFeatures: false,
    });
    const status = readFileSync(`/proc/${told.pid}/status`, "utf8");
    expect(status).toMatch(/^Seccomp:\t2$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
  });
});
