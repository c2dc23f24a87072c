// Keeps an open page up to date: the server renders every part, this puts it in place, draws curves and follows the log.
'use strict';

const WAIT = 20; // seconds the server may hold an answer until there is news
const REST = 1000; // milliseconds between two questions
const LONGEST_LOG = 2e6; // characters kept in the page

if (location.hash.startsWith('#key=')) history.replaceState(null, '', location.pathname + location.search);

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

function untilVisible() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((done) => document.addEventListener('visibilitychange', done, { once: true }));
}

class Refused extends Error {}

/** Ask until there is an answer: a server that is away for a while is told to the reader, not given up. */
async function ask(address, read = (reply) => reply.json()) {
  const trouble = document.getElementById('trouble');
  for (let rest = REST; ; rest = Math.min(2 * rest, 10000)) {
    try {
      const reply = await fetch(address);
      if (reply.status === 401) throw new Refused('This page is no longer logged in. Open its link again.');
      if (reply.status === 404) throw new Refused('This is not there any more.');
      if (!reply.ok) throw new Error(reply.statusText);
      const answer = await read(reply);
      trouble.hidden = true;
      return answer;
    } catch (error) {
      const refused = error instanceof Refused;
      trouble.textContent = refused ? error.message : 'The server does not answer. Trying again …';
      trouble.hidden = false;
      if (refused) throw error;
      await pause(rest);
      await untilVisible();
    }
  }
}

// -- times

let clockAhead = 0; // seconds that this computer's clock is ahead of the server's

function setClock(serverNow) {
  clockAhead = Date.now() / 1000 - serverNow;
}

function duration(seconds) {
  const whole = Math.round(seconds);
  const two = (number) => String(Math.floor(number)).padStart(2, '0');
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${two((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${two((whole % 86400) / 3600)} h`;
}

function tick() {
  const now = Date.now() / 1000 - clockAhead;
  for (const span of document.querySelectorAll('[data-since]')) span.textContent = duration(now - span.dataset.since);
}

function localTimes(within) {
  const two = (number) => String(number).padStart(2, '0');
  for (const time of within.querySelectorAll('time')) {
    const at = new Date(time.dateTime);
    time.title = time.dateTime;
    time.textContent =
      `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` +
      `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  }
}

// -- the log

class Log {
  constructor(here) {
    this.here = here;
    this.box = document.getElementById('log-text');
    [this.whole, this.open] = this.box.children;
    this.name = this.box.dataset.name;
    this.next = Number(this.box.dataset.next);
    this.toEnd();
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
  }

  async follow(logs) {
    this.name = this.name || Object.keys(logs)[0] || '';
    if (!this.name) return;
    if (logs[this.name] - this.next > LONGEST_LOG) this.next = null; // far behind: only its end is worth reading
    let size = logs[this.name];
    while (this.next === null || this.next < size) {
      const offset = this.next === null ? '' : `&offset=${this.next}`;
      const piece = await ask(`${this.here}/log.json?name=${encodeURIComponent(this.name)}${offset}`);
      this.show(piece, this.next === null);
      if (piece.next === this.next) return; // only a line that is still open
      this.next = piece.next;
      size = piece.size;
    }
  }

  show(piece, anew) {
    const atEnd = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 40;
    this.box.hidden = false;
    if (anew) {
      this.whole.textContent = '';
      this.tellSkipped(piece.start > 0);
    }
    if (piece.text) this.whole.append(piece.text);
    this.open.textContent = piece.open;
    this.forgetOldest();
    if (atEnd) this.toEnd(); // whoever scrolled up wants to read
  }

  forgetOldest() {
    let length = this.whole.textContent.length;
    while (length > LONGEST_LOG && this.whole.childNodes.length > 1) {
      length -= this.whole.firstChild.length;
      this.whole.firstChild.remove();
      this.tellSkipped(true);
    }
  }

  tellSkipped(skipped) {
    document.getElementById('log-skipped').hidden = !skipped;
  }
}

// -- curves

const X_IS = { step: 'step', number: 'point', seconds: 'seconds since the first' };

class Curves {
  constructor(here) {
    this.here = here;
    this.home = document.getElementById('curves');
    this.figures = new Map(); // by metric name
    this.seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        target.lapis.visible = isIntersecting;
        this.draw(target.lapis);
      }
    }, { rootMargin: '200px' });
    this.sized = new ResizeObserver((entries) => {
      for (const { target } of entries) target.lapis.chart?.setSize({ width: target.clientWidth, height: 200 });
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      for (const figure of this.figures.values()) {
        figure.chart?.destroy();
        figure.chart = null;
        figure.drawn = 0;
        this.draw(figure);
      }
    });
  }

  update(metrics) {
    for (const metric of metrics) {
      if (!metric.curve) continue;
      const figure = this.figures.get(metric.name) || this.add(metric.name);
      figure.count = metric.count;
      this.draw(figure);
    }
  }

  add(name) {
    const element = document.createElement('figure');
    const caption = document.createElement('figcaption');
    const plot = document.createElement('div');
    caption.textContent = name;
    element.append(caption, plot);
    const figure = { name, plot, count: 0, drawn: 0, busy: false, visible: false, chart: null };
    element.lapis = plot.lapis = figure;
    this.figures.set(name, figure);
    this.home.append(element);
    this.seen.observe(element);
    this.sized.observe(plot);
    return figure;
  }

  async draw(figure) {
    if (!figure.visible || figure.busy || figure.drawn === figure.count) return;
    figure.busy = true;
    const count = figure.count;
    try {
      const curve = await ask(`${this.here}/curve.json?name=${encodeURIComponent(figure.name)}`);
      this.paint(figure, curve);
      figure.drawn = count;
    } catch (error) {
      if (!(error instanceof Refused)) throw error; // the reader has been told
    } finally {
      figure.busy = false;
    }
  }

  paint(figure, curve) {
    if (figure.chart && figure.xIs === curve.x_is) {
      figure.chart.setData([curve.x, curve.y]);
      return;
    }
    figure.chart?.destroy();
    figure.xIs = curve.x_is;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const font = '12px system-ui, sans-serif';
    const grid = { stroke: colour('--line'), width: 1 };
    const axis = { stroke: colour('--quiet'), grid, ticks: { show: false }, font, labelFont: font };
    const brief = (_, number) => (number === null ? '' : String(Number(number.toPrecision(6))));
    figure.chart = new uPlot({
      width: figure.plot.clientWidth,
      height: 200,
      scales: { x: { time: false } },
      cursor: { y: false },
      axes: [{ ...axis, label: X_IS[curve.x_is], labelSize: 18, size: 32 }, { ...axis, size: 62 }],
      series: [
        { label: X_IS[curve.x_is], value: brief },
        { label: 'value', value: brief, stroke: colour('--accent'), width: 2 },
      ],
    }, [curve.x, curve.y], figure.plot);
  }
}

// -- pages

async function followRun(page) {
  const here = page.dataset.here;
  const log = new Log(here);
  const curves = new Curves(here);
  const shown = new Map();
  let mark = '';
  for (let ended = false; !ended; ) {
    await untilVisible();
    const query = new URLSearchParams({ seen: mark, wait: WAIT, log: log.name });
    const state = await ask(`${here}/state.json?${query}`);
    setClock(state.now);
    const asRendered = !mark && state.mark === page.dataset.mark;
    for (const [name, html] of Object.entries(state.sections)) {
      if (shown.get(name) === html) continue;
      shown.set(name, html);
      if (asRendered) continue; // the page came with just this
      const place = page.querySelector(`[data-live="${name}"]`);
      place.innerHTML = html; // rendered by the same template as the page, which escapes all that users wrote
      localTimes(place);
    }
    mark = state.mark;
    ended = state.ended;
    curves.update(state.metrics);
    await log.follow(state.logs);
    if (!ended) await pause(REST);
  }
}

async function followList() {
  for (let list; (list = document.querySelector('#runs[data-live-list]')); ) {
    await pause(5 * REST);
    await untilVisible();
    const html = await ask(location.pathname + location.search, (reply) => reply.text());
    const page = new DOMParser().parseFromString(html, 'text/html');
    list.replaceWith(page.getElementById('runs'));
    setClock(document.getElementById('runs').dataset.now);
    localTimes(document);
  }
}

const started = document.querySelector('[data-now]');
if (started) setClock(started.dataset.now);
localTimes(document);
setInterval(tick, 1000);
const runPage = document.getElementById('run');
(runPage ? followRun(runPage) : followList()).catch((error) => {
  if (!(error instanceof Refused)) throw error; // the reader has been told
});
