import { chromium } from "playwright-core";
const b = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--allow-file-access-from-files"],
});
const [dir, ending, cols, width, ...names] = Deno.args;
const p = await b.newPage({ viewport: { width: Number(cols) * (Number(width) + 8), height: 800 } });
const html = `<body style="margin:0;background:#888;font:12px sans-serif">${
  names.map((n) =>
    `<figure style="display:inline-block;margin:4px"><figcaption>${n}</figcaption><img width=${width} src="data:image/png;base64,${
      btoa(Deno.readFileSync(`${dir}/${n}-${ending}.png`).reduce((s, c) => s + String.fromCharCode(c), ""))
    }"></figure>`
  ).join("")
}`;
await p.setContent(html);
await p.screenshot({ path: "/tmp/console2/sheet.png", fullPage: true });
await b.close();
