// The page of `cublame report --html` in a browser: light and dark, on a phone, printed; what it says to the console, and what it asks for.
// usage: node reportPage.mjs TOOLS CUBLAME OUT
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [tools, cublame, out] = process.argv.slice(2);
const { chromium } = createRequire(path.join(tools, 'tools/'))('playwright-core');
const sessions = fileURLToPath(new URL('../../tests/fixtures/sessions/h200/off/', import.meta.url));
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cublame-page-'));

/** The contrast of two colours as `rgb(...)`, as WCAG 2.2 defines it. */
function contrast(one, other) {
  const luminance = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map((part) => Number(part) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

/** Each text against the first background beneath it. */
const texts = () => {
  const found = [];
  for (const element of document.querySelectorAll('h1, h2, p, li, dd, dt, td, th, code, summary, .chip, .row, .no, .note')) {
    let beneath = element;
    while (beneath && getComputedStyle(beneath).backgroundColor === 'rgba(0, 0, 0, 0)') beneath = beneath.parentElement;
    if (element.textContent.trim() !== '') found.push([element.tagName + '.' + element.className, getComputedStyle(element).color, getComputedStyle(beneath ?? document.body).backgroundColor]);
  }
  return found;
};

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  execFileSync(cublame, ['demo', '--workspace', path.join(folder, 'demo')]);
  const runs = { demo: path.join(folder, 'demo'), memory: path.join(sessions, 'oom_leak'), ranks: path.join(sessions, 'dist_rank') };
  for (const [name, run] of Object.entries(runs)) {
    for (const lang of ['en', 'zh']) {
      const file = path.join(folder, `${name}-${lang}.html`);
      const which = name === 'demo' ? [] : [run];
      execFileSync(cublame, ['report', ...which, '--html', '--lang', lang, '--output', file], { cwd: name === 'demo' ? run : folder });
      for (const [kind, size, scheme] of [['light', [1100, 900], 'light'], ['dark', [1100, 900], 'dark'], ['phone', [390, 844], 'light']]) {
        const context = await browser.newContext({ viewport: { width: size[0], height: size[1] }, colorScheme: scheme });
        const page = await context.newPage();
        const said = [];
        page.on('console', (message) => said.push(message.text()));
        page.on('pageerror', (failure) => said.push(failure.message));
        page.on('request', (request) => request.url() === pathToFileURL(file).href || said.push(request.url()));
        await page.goto(pathToFileURL(file).href);
        await page.screenshot({ path: path.join(out, `report-${name}-${lang}-${kind}.png`), fullPage: true });
        if (process.env.SCREENSHOTS === 'update' && `${name}-${lang}-${kind}` === 'demo-en-light') await page.screenshot({ path: fileURLToPath(new URL('../../docs/report.png', import.meta.url)), clip: { x: 70, y: 20, width: 960, height: 1000 }, fullPage: true });
        assert.deepEqual(said, [], `${file} ${kind}`);
        assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('main')).maxWidth), '960px', 'the style is applied');
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), `${name} ${lang} ${kind} is wider than its window`);
        for (const [element, colour, background] of await page.evaluate(texts)) assert.ok(contrast(colour, background) >= 4.5, `${element} ${kind}: ${colour} on ${background}`);
        if (kind === 'dark') {
          await page.emulateMedia({ media: 'print' });
          assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)', 'paper is white');
          assert.ok(await page.evaluate(() => [...document.querySelectorAll('details pre, details ul')].every((element) => element.getBoundingClientRect().height > 0)), 'what is folded is printed');
        }
        await context.close();
      }
    }
  }
} finally {
  await browser.close();
  fs.rmSync(folder, { recursive: true, force: true });
}
