// What a person sees: the page is driven by keys and clicks, and its screenshots are the README's.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

export async function pages({ editor, browser, out, line, folder }) {
  const file = path.join(folder, 'embedding_oob.py');
  const page = await editor.open(browser, folder, [['openFile', editor.remote(file)]]);
  const shot = (name) => page.screenshot({ path: path.join(out, `${name}.png`) });
  const check = async (name, body) => {
    try {
      await body();
      line(`ok - ${name}`);
    } catch (failure) {
      await shot(`failure-${name.replace(/\W+/g, '-')}`).catch(() => {});
      line(`not ok - ${name}\n${failure.stack}`);
    }
  };
  const status = page.locator('[id="cublame.cublame.cublame.mode"], [id="cublame.cublame.mode"]').first();
  const statusText = async (text) => {
    await page.waitForFunction((wanted) => [...document.querySelectorAll('.statusbar-item')].some((item) => item.textContent.replace(/\u00a0/g, ' ').includes(wanted)), text, { timeout: 30000 });
  };
  const command = async (text) => {
    await page.keyboard.press('F1');
    await page.locator('.quick-input-widget input').first().fill(`>${text}`);
    await page.locator('.quick-input-widget .monaco-list-row', { hasText: text }).first().click();
  };

  await page.go();
  await page.waitForSelector('.part.editor .monaco-editor .view-line', { timeout: 90000 });

  await check('the status bar says the mode, and the quick pick says what each gives and costs', async () => {
    await statusText('CUDA: full-speed blame');
    await status.click();
    const rows = page.locator('.quick-input-widget .monaco-list-row');
    await rows.nth(4).waitFor({ timeout: 20000 });
    const texts = await rows.allInnerTexts();
    assert.match(texts.join('\n'), /blocking\s*1\.4 to 2\.1 times/);
    await shot('mode');
    await rows.filter({ hasText: 'CUDA_LAUNCH_BLOCKING=1' }).first().click();
    await statusText('CUDA: blocking');
    assert.equal(fs.readFileSync(path.join(folder, '.cublame', 'mode'), 'utf8'), 'blocking\n');
  });

  await check('a word written into .cublame/mode by another program is seen in the status bar', async () => {
    fs.writeFileSync(path.join(folder, '.cublame', 'mode'), 'guard\n');
    await statusText('CUDA: guard');
    fs.writeFileSync(path.join(folder, '.cublame', 'mode'), 'blocking\n');
    await statusText('CUDA: blocking');
  });

  await check('F5 ends with the squiggle on the culprit line, and its entry in Problems', async () => {
    await page.locator('.part.editor .monaco-editor .view-line').first().click();
    const stopped = page.locator('.debug-toolbar');
    for (let tries = 0; tries < 30 && (await stopped.count()) === 0; tries += 1) {
      await page.keyboard.press('F5');
      await page.waitForTimeout(1000);
    }
    await page.waitForSelector('.monaco-editor .squiggly-error', { timeout: 30000 });
    await page.waitForSelector('.monaco-editor .exception-widget', { timeout: 30000 });
    await shot('live');
    await page.keyboard.press('F5');
    await stopped.waitFor({ state: 'hidden', timeout: 30000 });
    await page.keyboard.press('Control+Shift+M');
    const row = page.locator('.markers-panel .monaco-list-row', { hasText: 'Exact' }).first();
    await row.waitFor({ timeout: 30000 });
    assert.match(await row.innerText(), /\[Ln 8, /);
  });

  await check('the quick fixes of the failure are offered at its line', async () => {
    await page.locator('.markers-panel .monaco-list-row', { hasText: 'Exact' }).first().dblclick();
    await page.waitForSelector('.monaco-editor.focused', { timeout: 10000 });
    await page.locator('.codelens-decoration', { hasText: 'index out of range' }).first().waitFor({ timeout: 10000 });
    await shot('squiggle');
    await page.keyboard.press('Control+.');
    const actions = page.locator('.action-widget .monaco-list-row');
    await actions.filter({ hasText: 'Open the report' }).first().waitFor({ timeout: 20000 });
    await shot('actions');
    await actions.filter({ hasText: 'Open the report' }).first().click();
    await page.locator('.tab', { hasText: 'report' }).first().waitFor({ timeout: 20000 });
    // The page of a webview is a frame in a frame.
    const report = page.frameLocator('iframe.webview').frameLocator('iframe').locator('body');
    await report.filter({ hasText: 'embedding_oob.py:8' }).waitFor({ timeout: 20000 });
    await shot('report');
    await command('View: Close Editor');
  });

  await check('the view of runs shows the run, its verdict and a badge', async () => {
    await command('cublame: Focus on Runs View');
    const row = page.locator('.pane-body .monaco-list-row', { hasText: 'embedding_oob.py' }).first();
    await row.waitFor({ timeout: 20000 });
    await page.locator('.activitybar .badge-content', { hasText: '1' }).first().waitFor({ timeout: 20000 });
    await command('View: Hide Panel');
    await page.locator('.pane-body .monaco-list-row', { hasText: 'index out of range' }).first().click();
    await page.waitForTimeout(500);
    await shot('runs');
  });

  await check('a debug session that saw the exception alone says so, and offers a task that sees more', async () => {
    fs.writeFileSync(path.join(folder, '.cublame', 'mode'), 'off\n');
    await statusText('CUDA: off');
    await page.keyboard.press('F5');
    const stopped = page.locator('.debug-toolbar');
    await page.waitForSelector('.monaco-editor .exception-widget', { timeout: 30000 });
    await page.keyboard.press('F5');
    await stopped.waitFor({ state: 'hidden', timeout: 30000 });
    const notice = page.locator('.notification-list-item', { hasText: 'Only the exception of this debug session was seen' }).first();
    await notice.waitFor({ timeout: 30000 });
    await shot('missing');
    await notice.locator('.monaco-button', { hasText: 'Run Again as a Task' }).click();
    await page.waitForFunction(() => document.querySelectorAll('.pane-body .monaco-list-row[aria-level="1"]').length === 3, null, { timeout: 30000 });
    const tasked = fs.readdirSync(path.join(folder, '.cublame', 'runs')).sort().at(-1);
    assert.equal(JSON.parse(fs.readFileSync(path.join(folder, '.cublame', 'runs', tasked, 'run.json'), 'utf8')).watch, 'supervised');
  });

  await check('the walkthrough opens', async () => {
    await command('Welcome: Open Walkthrough...');
    await page.keyboard.type('Find the Line');
    await page.waitForTimeout(500);
    await page.keyboard.press('Enter');
    await page.locator('.gettingStartedContainer', { hasText: 'Run as ever' }).first().waitFor({ timeout: 20000 });
    await page.waitForTimeout(1000);
    await shot('walkthrough');
  });

  await page.context().close();
}
