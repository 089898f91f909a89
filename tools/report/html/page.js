// SPDX-License-Identifier: Apache-2.0
// Draws the charts and the tables of a report, and of a comparison, from the JSON in the page. Texts go in as text nodes only.
'use strict';
(() => {
const report = JSON.parse(document.getElementById('report').textContent);
const steps = report.steps || [];
const unit = report.whole_windows ? 'window' : 'step';
const timed = report.gpu?.timed !== false;
const PARTS = [['compute', 'Compute'], ['communication', 'Communication'], ['transfer', 'Copies'], ['data_loading', 'Data loading'],
  ['kernel_launch', 'Kernel launch'], ['allocation', 'Allocation'], ['synchronization', 'Synchronization'], ['other', 'Other'],
  ['profiler', 'Profiler'], ['unknown', 'Not recorded']];
const MOST_LINES = 8, FIRST_ROWS = 15;
const FLAME_ROW = 22;  // pixels
const MOST_PIXELS = 32000;  // of a canvas, in each direction; more draws nothing

// --- figures as text ---------------------------------------------------------------------------------------
const digits = (value, count) => value.toLocaleString('en', {maximumFractionDigits: count, minimumFractionDigits: count});
const number = value => Number.isInteger(value) ? value.toLocaleString('en') : digits(value, Math.abs(value) < 10 ? 2 : 1);
function scaled(value, step, units) {
  let unit = 0;
  while (Math.abs(value) >= step && unit + 1 < units.length) { value /= step; ++unit; }
  const decimals = Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : 2;
  return `${digits(value, decimals)} ${units[unit]}`;
}
const micros = us => us >= 1e6 ? scaled(us / 1e6, 1e9, ['s']) : scaled(us, 1000, ['\u00b5s', 'ms']);
const bytes = value => scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
const percent = value => `${digits(value, 1)} %`;
const FORMATS = {
  us: micros, bytes, pct: percent, part: value => percent(100 * value), n: number,
  change: value => value >= 1000 ? `\u00d7 ${digits(1 + value / 100, 0)}` : Math.abs(value) < 0.05 ? percent(0) : `${value > 0 ? '+' : ''}${percent(value)}`,
  dims: value => value.join(' \u00d7 '),
  yes: value => value ? 'yes' : '',
  gbs: value => `${digits(value, 1)} GB/s`,
  tera: value => value ? number(value / 1e12) : '',
  factor: value => `${digits(value, 2)} \u00d7`,
  text: value => value, code: value => value, list: value => value.join(', '),
};

// --- elements ----------------------------------------------------------------------------------------------
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const rankColour = index => colour(PARTS[[6, 1, 0, 3, 2, 4, 5, 7][index % 8]][0]);
// Who a row is of: its rank, or, without one, its process.
const processes = report.processes || [];
const severalHosts = new Set(processes.map(each => each.host)).size > 1;
const ranked = processes.every(each => each.rank >= 0), MEMBERS = ranked ? 'ranks' : 'processes';
const memberOf = row => row.rank < 0 ? `process ${row.process ?? 0}` : String(row.rank);
function memberName(row) {
  if (row.rank >= 0) return `rank ${row.rank}`;
  const {pid, host} = processes[row.process] || {};
  return processes.length > 1 ? `process ${pid || row.process}${severalHosts ? ` on ${host}` : ''}` : 'process';
}

// A card with a heading and controls, to which `redraw` belongs.
const redraws = [];
function card(parent, id, title, ...controls) {
  const head = element('div', {className: 'head'}, element('h2', {}, title), ...controls);
  const made = element('section', {id}, head);
  document.getElementById(parent).append(made);
  return made;
}
function choice(label, options, changed) {
  const made = element('select', {onchange: changed});
  made.setAttribute('aria-label', label);
  for (const [value, text] of options) made.append(element('option', {value}, text));
  return made;
}

// --- charts ------------------------------------------------------------------------------------------------
function plot(section, configuration) {
  const canvas = element('canvas');
  section.append(element('div', {className: 'plot'}, canvas));
  let chart;
  const draw = () => {
    if (chart) chart.destroy();
    Chart.defaults.color = colour('faint');
    Chart.defaults.borderColor = colour('line');
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    const made = configuration();
    made.options = Object.assign({animation: false, responsive: true, maintainAspectRatio: false, interaction: {mode: 'index', intersect: false}},
      made.options);
    chart = new Chart(canvas, made);
  };
  redraws.push(draw);
  draw();
  return draw;
}
const axis = (text, more = {}) => Object.assign({title: {display: true, text}}, more);
// Not Math.max(...): an argument for each value is more than engines take from some 100,000 on.
const greatest = values => values.reduce((a, b) => Math.max(a, b), -Infinity);
const least = values => values.reduce((a, b) => Math.min(a, b), Infinity);
// [what tells it from the others, its name]
const membersOf = rows => [...new Map(rows.map(row => [memberOf(row), memberName(row)]))];

function stepBars() {
  if (!steps.length || report.whole_windows) return;
  const ranks = membersOf(steps);
  let draw;
  const options = [...(ranks.length > 1 ? [['mean', `mean of all ${MEMBERS}`]] : []), ...ranks];
  const pick = choice('Rank', options, () => draw());
  const section = card('charts', 'steps', 'Steps', ...(ranks.length > 1 ? [pick] : []));
  draw = plot(section, () => {
    const rows = new Map();
    for (const step of steps) {
      if (pick.value !== 'mean' && memberOf(step) !== pick.value) continue;
      const key = `${step.window}/${step.step}`;
      if (!rows.has(key)) rows.set(key, {label: String(step.step), count: 0, whole: 0, parts: {}});
      const row = rows.get(key);
      ++row.count;
      row.whole += step.duration_us;
      if (step.parts_us) for (const [part] of PARTS) row.parts[part] = (row.parts[part] || 0) + step.parts_us[part];
    }
    const all = [...rows.values()], longest = greatest(steps.map(step => step.duration_us)) / 1000;
    const bar = {stack: 'step', categoryPercentage: .9, barPercentage: .95};
    const whole = [{...bar, label: 'Step time', backgroundColor: colour('compute'), data: all.map(row => row.whole / row.count / 1000)}];
    const datasets = report.tables_only ? whole : PARTS.map(([part, label]) => ({...bar, label, backgroundColor: colour(part),
      data: all.map(row => row.parts[part] / row.count / 1000)}))
      .filter(set => set.data.some(value => value > 0.0005 * longest));
    return {type: 'bar', data: {labels: all.map(row => row.label), datasets},
      options: {scales: {x: axis('step', {stacked: true, grid: {display: false}}), y: axis('ms', {stacked: true, beginAtZero: true})},
        plugins: {legend: {position: 'bottom', labels: {boxWidth: 12}},
          tooltip: {callbacks: {title: items => `step ${items[0].label}`, label: item => `${item.dataset.label}: ${digits(item.parsed.y, 2)} ms`}}}}};
  });
}

// A line for each rank or process; its windows are apart.
function lines(pointsOf, curves, wanted) {
  const byMember = new Map();
  for (const curve of curves) {
    const member = memberOf(curve);
    if (wanted !== 'all' && member !== wanted) continue;
    const points = pointsOf(curve);
    if (!points.length) continue;
    if (!byMember.has(member)) byMember.set(member, {name: memberName(curve), data: []});
    const {data} = byMember.get(member);
    byMember.get(member).data = [...data, ...(data.length ? [{x: points[0].x, y: null}] : []), ...points];
  }
  return [...byMember.values()];
}
function timeLine(id, title, curves, metrics) {
  const ranks = membersOf(curves);
  const end = greatest(curves.map(curve => (curve.begin_us + curve.bin_us * curve.utilization_pct.length) / 1000));
  let draw;
  const rankOptions = [...(ranks.length > 1 && ranks.length <= MOST_LINES ? [['all', `all ${MEMBERS}`]] : []), ...ranks];
  const pick = choice('Rank', rankOptions, () => draw());
  const metric = choice('Figure', metrics.map((row, index) => [index, row.name]), () => draw());
  const section = card('charts', id, title, ...(metrics.length > 1 ? [metric] : []), ...(ranks.length > 1 ? [pick] : []));
  draw = plot(section, () => {
    const chosen = metrics[Number(metric.value)];
    const sets = lines(chosen.points, curves, pick.value).map(({name, data}, index) => ({label: name, data, stepped: true,
      borderWidth: 1.5, pointRadius: 0, borderColor: rankColour(index), backgroundColor: `${rankColour(index)}33`, fill: ranks.length === 1 || pick.value !== 'all'}));
    return {type: 'line', data: {datasets: sets},
      options: {parsing: false, normalized: true, interaction: {mode: 'nearest', axis: 'x', intersect: false},
        scales: {x: axis(`time since the first ${unit} began, ms`, {type: 'linear', min: 0, max: end, grid: {display: false},
          ticks: {maxTicksLimit: 12, includeBounds: false}}),
          y: axis(chosen.unit, {beginAtZero: true, suggestedMax: chosen.most, ticks: chosen.ticks ? chosen.ticks(sets) : {}})},
        plugins: {legend: {display: ranks.length > 1, position: 'bottom', labels: {boxWidth: 12}},
          tooltip: {callbacks: {title: items => items.length ? `${digits(items[0].parsed.x, 2)} ms` : '', label: item => `${item.dataset.label}: ${chosen.show(item.parsed.y)}`}}}}};
  });
}
const binned = key => curve => curve[key].map((y, index) => ({x: (curve.begin_us + index * curve.bin_us) / 1000, y}));
const sampled = key => curve => curve[key].time_us.map((time, index) => ({x: (curve.begin_us + time) / 1000, y: curve[key].bytes[index]}));

// Some five steps of a round number of MiB, GiB, ...
function binaryTicks(sets) {
  const most = Math.max(1, greatest(sets.map(set => greatest(set.data.map(point => point.y || 0)))));
  return {stepSize: 2 ** Math.ceil(Math.log2(most / 6)), callback: bytes};
}

// Coloured cells with a name at each row and column. `value(y, x)`: undefined draws nothing; `tell` says it in words.
function grid(section, {rows, columns, value, tell, left}) {
  const canvas = element('canvas'), scale = element('div', {className: 'scale'}), note = element('span');
  section.append(element('div', {className: 'heat'}, canvas), scale);
  const cell = Math.max(3, Math.min(26, 420 / rows.length));
  const draw = () => {
    const values = rows.flatMap((_, y) => columns.map((__, x) => value(y, x))).filter(each => each !== undefined);
    const low = least(values), high = greatest(values);
    const sharp = Math.min(devicePixelRatio || 1, MOST_PIXELS / (rows.length * cell + 22));
    const width = Math.min(Math.max(section.clientWidth - 42, columns.length * 6 + left), MOST_PIXELS / sharp), wide = (width - left) / columns.length;
    canvas.width = width * sharp;
    canvas.height = (rows.length * cell + 22) * sharp;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${rows.length * cell + 22}px`;
    const context = canvas.getContext('2d');
    context.scale(sharp, sharp);
    context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    context.textBaseline = 'middle';
    const longest = Math.max(...columns.map(name => context.measureText(name).width)) + 8;
    const everyRow = Math.ceil(14 / cell), everyColumn = Math.ceil(Math.max(34, longest) / wide);
    rows.forEach((name, y) => {
      context.globalAlpha = 1;
      context.fillStyle = colour('faint');
      if (y % everyRow === 0) context.fillText(name, 0, (y + .5) * cell, left - 4);
      context.fillStyle = colour('data_loading');
      columns.forEach((_, x) => {
        const here = value(y, x);
        if (here === undefined) return;
        context.globalAlpha = .06 + .94 * (high > low ? (here - low) / (high - low) : 0);
        context.fillRect(left + x * wide, y * cell, Math.max(1, wide - 1), Math.max(1, cell - (cell > 6 ? 1 : 0)));
      });
    });
    context.globalAlpha = 1;
    context.fillStyle = colour('faint');
    columns.forEach((name, x) => { if (x % everyColumn === 0) context.fillText(name, left + x * wide, rows.length * cell + 12); });
    const ramp = element('i');
    ramp.style.background = `linear-gradient(90deg, color-mix(in srgb, ${colour('data_loading')} 6%, transparent), ${colour('data_loading')})`;
    scale.replaceChildren(micros(low), ramp, micros(high), note);
    canvas.onmousemove = event => {
      const x = Math.floor((event.offsetX - left) / wide), y = Math.floor(event.offsetY / cell);
      const here = rows[y] !== undefined && columns[x] !== undefined ? value(y, x) : undefined;
      note.textContent = here === undefined ? '' : tell(y, x, here);
    };
  };
  redraws.push(draw);
  draw();
  addEventListener('resize', draw);
  return draw;
}

function heatMap() {
  const ranks = membersOf(steps);
  if (ranks.length < 2 || report.whole_windows) return;
  const columns = [...new Map(steps.map(step => [`${step.window}/${step.step}`, step])).values()];
  const at = new Map(steps.map(step => [`${memberOf(step)}/${step.window}/${step.step}`, step]));
  // Compute first: ranks that wait for each other have the same step times.
  const metrics = [...PARTS.filter(([part]) => steps.some(step => step.parts_us?.[part] > 0)), ['duration_us', 'Step time']];
  let draw;
  const pick = choice('Figure', metrics, () => draw());
  const section = card('charts', 'heat', `${ranked ? 'Ranks' : 'Processes'} and steps`, pick);
  const value = (y, x) => {
    const step = at.get(`${ranks[y][0]}/${columns[x].window}/${columns[x].step}`);
    return step && (pick.value === 'duration_us' ? step.duration_us : step.parts_us[pick.value]);
  };
  draw = grid(section, {rows: ranks.map(([, name]) => name), columns: columns.map(column => String(column.step)), value, left: ranked ? 64 : 140,
    tell: (y, x, here) => `${ranks[y][1]}, step ${columns[x].step}: ${micros(here)}`});
}

function waitMap() {
  const {names = [], us = []} = report.rank_waits || {};
  if (names.length < 2) return;
  const section = card('charts', 'rank-waits', 'Who waits for whom in collectives');
  grid(section, {rows: names, columns: names, value: (y, x) => us[y][x], left: 96,
    tell: (y, x, here) => `${names[y]} waits ${micros(here)} for ${names[x]}, which comes last`});
}

// Python's stacks in the time in which no GPU worked, callers above what they call. A click makes a frame as wide as all;
// on a caller, back again.
function flameGraph() {
  const stacks = report.python_stacks || [];
  if (!stacks.length) return;
  const root = {name: 'all idle time', us: 0, below: new Map()};
  for (const {frames, idle_us: us} of stacks) {
    let at = root;
    at.us += us;
    for (const name of frames) {
      if (!at.below.has(name)) at.below.set(name, {name, us: 0, above: at, below: new Map()});
      at = at.below.get(name);
      at.us += us;
    }
  }
  const section = card('charts', 'flame', timed ? 'GPU idle, by Python stack' : 'Python stacks; when the GPU was idle is not known');
  const graph = element('div', {className: 'flame'});
  section.append(graph);
  const show = focus => {
    const drawn = [];
    let rows = 0;
    const draw = (node, row, left, width) => {
      if (width < .15) return;
      rows = Math.max(rows, row + 1);
      const made = element('button', {type: 'button', title: `${node.name}\n${micros(node.us)}, ${percent(100 * node.us / root.us)} of the idle time`,
        onclick: () => show(node)}, node.name.replace(/\((.*\/)/, '('));
      if (/site-packages|dist-packages|\/lib\/python|<frozen/.test(node.name)) made.className = 'library';
      made.dataset.us = node.us;
      Object.assign(made.style, {left: `${left}%`, width: `${width}%`, top: `${row * FLAME_ROW}px`, height: `${FLAME_ROW - 1}px`});
      drawn.push(made);
    };
    const drawBelow = (node, row, left, width) => {
      for (const each of [...node.below.values()].sort((a, b) => b.us - a.us)) {
        const part = width * each.us / node.us;
        draw(each, row, left, part);
        if (part >= .15) drawBelow(each, row + 1, left, part);
        left += part;
      }
    };
    const callers = [];
    for (let at = focus; at; at = at.above) callers.unshift(at);
    callers.forEach((each, row) => draw(each, row, 0, 100));
    drawBelow(focus, callers.length, 0, 100);
    graph.style.height = `${rows * FLAME_ROW}px`;
    graph.replaceChildren(...drawn);
  };
  show(root);
}

// --- tables ------------------------------------------------------------------------------------------------
const grouped = report.operators_by ?? {by: '', rows: []};
report.operators_grouped = grouped.rows;
// Of a pipeline: what explains its slowdown.
const SHARES = [['slow_workers', 'slow worker'], ['by_stage', 'stage'], ['by_kind', 'kind of operation']];
if (report.pipeline) {
  report.pipeline_shares = SHARES.flatMap(([key, kind]) => report.pipeline[key].map(row => ({...row, kind, factor: row.factor || null})));
}
// A column: field, title, format, and, if its cells have bars, what these are shares of: true: the column's sum; 'gpu': all
// work of the GPU, since calls hold others; 'bar': of nothing.
const TABLES = [
  ['changes', 'What changed, in a step', [['name', 'name', 'code'], ['kind', 'kind', 'text'], ['base_us', 'before', 'us'], ['new_us', 'now', 'us'],
    ['difference_us', 'difference', 'us', true], ['change_pct', 'change', 'change'], ['significant', 'beyond noise', 'yes'],
    ['gone', 'gone', 'yes'], ['new', 'new', 'yes']]],
  ['kernels', 'Kernels', [['name', 'kernel', 'code'], ['total_us', 'total', 'us', true], ['count', 'count', 'n'], ['mean_us', 'mean', 'us'],
    ['grid', 'grid', 'dims'], ['block', 'block', 'dims'], ['occupancy_pct', 'occupancy', 'pct'], ['tensor_cores', 'tensor cores', 'yes']]],
  ['operators', 'Operators and ranges', [['name', 'operator', 'code'], ['gpu_us', 'GPU total', 'us', 'gpu'], ['gpu_self_us', 'GPU self', 'us'],
    ['cpu_us', 'CPU total', 'us'], ['cpu_self_us', 'CPU self', 'us'], ['count', 'count', 'n'], ['flop', 'TFLOP', 'tera']]],
  ['operators_grouped', `Operators by ${grouped.by}`, [['name', 'operator', 'code'], [grouped.by, grouped.by, 'code'], ['gpu_us', 'GPU total', 'us', 'gpu'],
    ['gpu_self_us', 'GPU self', 'us'], ['cpu_us', 'CPU total', 'us'], ['cpu_self_us', 'CPU self', 'us'], ['count', 'count', 'n']]],
  ['modules', 'Layers', [['name', 'layer', 'code'], ['gpu_us', 'GPU total', 'us', 'gpu'], ['gpu_backward_us', 'of it backward', 'us'], ['gpu_self_us', 'GPU self', 'us'],
    ['cpu_us', 'CPU total', 'us'], ['cpu_self_us', 'CPU self', 'us'], ['count', 'count', 'n']]],
  ['kernel_families', 'Kernels by family', [['name', 'family', 'text'], ['total_us', 'total', 'us', true], ['count', 'count', 'n'],
    ['tensor_core_pct', 'on Tensor cores', 'pct'], ['tensor_core_unknown_pct', 'not told by names', 'pct']]],
  ['places', 'Lines of code that wait, allocate or copy', [['place', 'place', 'code'], ['kind', 'what for', 'text'], ['total_us', 'total', 'us', true],
    ['count', 'count', 'n']]],
  ['python_lines', timed ? 'Code that ran while the GPU was idle' : 'Code that ran; when the GPU was idle is not known', [['place', 'line', 'code'], ['within', 'in', 'code'], ['idle_us', 'total', 'us', true],
    ['idle_pct', 'of idle', 'pct'], ['samples', 'samples', 'n']]],
  ['waiting_lines', 'Code that waited for the GPU', [['place', 'line', 'code'], ['within', 'in', 'code'], ['wait_us', 'total', 'us', true],
    ['wait_pct', 'of waiting', 'pct'], ['samples', 'samples', 'n']]],
  ['thread_states', 'What threads did in the steps', [['rank', 'rank', 'n'], ['thread', 'thread', 'text'], ['name', 'name', 'text'], ['steps', 'runs the steps', 'yes'],
    ['running_pct', 'running', 'pct'], ['waiting_pct', 'waiting for a processor', 'pct'], ['asleep_pct', 'asleep', 'pct', 'bar'], ['covered_pct', 'of the time known', 'pct']]],
  ['worker_lines', 'Where data loader workers spend their time', [['place', 'line', 'code'], ['within', 'in', 'code'], ['busy_us', 'total', 'us', true],
    ['busy_pct', 'of making batches', 'pct']]],
  ['memory_owners', 'Device memory at its peak', [['name', 'allocated by', 'code'], ['bytes', 'bytes', 'bytes', true], ['count', 'allocations', 'n']]],
  ['host_allocations', 'Host memory allocated (estimates)', [['place', 'by', 'code'], ['bytes', 'bytes', 'bytes', true], ['count', 'calls', 'n'],
    ['held_bytes', 'held at the end', 'bytes'], ['samples', 'samples', 'n']]],
  ['collectives', 'Collectives', [['name', 'collective', 'code'], ['group', 'process group', 'code'], ['total_us', 'on the GPU', 'us', true], ['count', 'count', 'n'], ['bytes', 'bytes', 'bytes']]],
  ['process_groups', 'Process groups', [['description', 'description', 'code'], ['name', 'name', 'code'], ['ranks', 'ranks', 'list'], ['collectives', 'collectives', 'n', true]]],
  ['collective_times', 'Collectives across their ranks', [['name', 'collective', 'code'], ['members', 'on', 'text'], ['size', 'size', 'text'], ['transfer_us', 'transfer', 'us', true],
    ['waiting_us', 'waiting', 'us'], ['between_copies_us', 'between copies', 'us'], ['exposed_us', 'exposed', 'us'], ['overlapped_us', 'overlapped', 'us'], ['calls', 'calls', 'n'], ['matched', 'matched', 'n'], ['bytes', 'bytes', 'bytes'],
    ['algorithm_gb_per_s', 'algorithm bandwidth', 'gbs'], ['bus_gb_per_s', 'bus bandwidth', 'gbs'], ['link_gb_per_s', 'link at most', 'gbs'], ['link', 'link', 'text']]],
  ['links', 'Messages between ranks', [['from', 'from rank', 'text'], ['to', 'to rank', 'text'], ['gb_per_s', 'bandwidth', 'gbs'], ['messages', 'messages', 'n'], ['bytes', 'bytes', 'bytes'],
    ['transfer_us', 'transfer', 'us', true]]],
  ['host_links', 'Messages between hosts', [['from', 'from', 'text'], ['to', 'to', 'text'], ['gb_per_s', 'bandwidth', 'gbs'], ['messages', 'messages', 'n'], ['bytes', 'bytes', 'bytes'],
    ['transfer_us', 'transfer', 'us', true]]],
  ['copies', 'Copies and sets', [['name', 'copy', 'text'], ['total_us', 'total', 'us', true], ['count', 'count', 'n'], ['bytes', 'bytes', 'bytes'],
    ['gb_per_s', 'bandwidth', 'gbs'], ['pageable', 'pageable', 'yes']]],
  ['synchronizations', 'Waiting for the GPU', [['name', 'call', 'code'], ['total_us', 'total', 'us', true], ['count', 'count', 'n']]],
  ['allocations', 'Allocation calls', [['name', 'call', 'code'], ['total_us', 'total', 'us', true], ['count', 'count', 'n']]],
  ['pipeline_shares', 'What explains the pipeline\'s slowdown', [['name', 'operations of', 'text'], ['kind', 'what it is', 'text'],
    ['explains', 'explains', 'part', 'bar'], ['factor', 'to the others', 'factor']]],
  ['stragglers', 'Ranks against the median one', [['rank', 'rank', 'n'], ['compute_factor', 'kernels', 'factor'], ['data_loading_factor', 'data loading', 'factor'],
    ['host_factor', 'host', 'factor'], ['compute_us', `kernels a ${unit}`, 'us'], ['waited_us', `waits a ${unit}`, 'us']]],
];
// Which kind of what GPUPROF_BUDGET leaves out a table is made of.
const KINDS = {operators: 'operators', operators_grouped: 'operators', modules: 'operators', places: 'stacks', python_lines: 'samples', waiting_lines: 'samples',
  thread_states: 'samples', synchronizations: 'waits', allocations: 'calls'};
function notWhole(key) {
  const found = (report.left_out_kinds ?? []).find(each => each.kind === KINDS[key]);
  return found ? `; not recorded ${found.since}` : '';
}
const sortValue = value => Array.isArray(value) ? value.reduce((product, each) => product * each, 1) : typeof value === 'boolean' ? Number(value) : value;

const known = value => value !== undefined && value !== null;
// In the order of `sign`, 1 or -1; what is not known comes last in both.
function compare(a, b, sign) {
  if (!known(a) || !known(b)) return known(b) - known(a);
  return sign * (typeof a === 'string' ? a.localeCompare(b) : a - b);
}
const sumOf = (rows, key) => (rows || []).reduce((sum, row) => sum + row[key], 0);
const gpuWork = sumOf(report.kernels, 'total_us') + sumOf(report.copies, 'total_us');
const WHOLES = {gpu: () => gpuWork, bar: () => undefined, true: sumOf};

function cellOf(row, [key, , format, share], {whole, most}) {
  const value = row[key] ?? '', cell = element('td');
  cell.dataset.value = Array.isArray(value) ? value.join(',') : String(value);
  const shown = key === 'name' && row.short_name ? row.short_name : value;
  const text = shown === '' ? '' : FORMATS[format](shown);
  if (format === 'code') { cell.append(element('code', {}, text)); cell.title = value; } else cell.append(text);
  if (share && most > 0) {
    const bar = element('i', {className: 'share'});
    bar.style.width = `${50 * Math.max(0, value) / most}px`;
    if (whole > 0) bar.title = percent(100 * value / whole);
    cell.append(element('span', {className: 'room'}, bar));
  }
  return cell;
}
function table(key, title, columns) {
  const rows = report[key] || [];
  if (!rows.length) return;
  columns = columns.filter(([name]) => rows.some(row => known(row[name]) && row[name] !== 0 && row[name] !== false));
  const filter = element('input', {type: 'search', placeholder: 'filter', oninput: () => fill()});
  filter.setAttribute('aria-label', `Filter ${title}`);
  const section = card('tables', key, title + notWhole(key), ...(rows.length > FIRST_ROWS ? [filter] : []));
  const head = element('tr'), body = element('tbody');
  const more = element('button', {type: 'button', className: 'more', onclick: () => { all = true; fill(); }});
  let all = false, by = columns.findIndex(([, , , share]) => share), down = true;
  if (by < 0) { by = 0; down = false; }
  columns.forEach(([, name, format], index) => {
    const cell = element('th', {tabIndex: 0, scope: 'col'}, name);
    const sort = () => { down = by === index ? !down : format !== 'code' && format !== 'text'; by = index; fill(); };
    cell.onclick = sort;
    cell.onkeydown = event => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); sort(); } };
    head.append(cell);
  });
  const fill = () => {
    const [name] = columns[by], wanted = filter.value.toLowerCase();
    const sums = columns.map(([column, , , share]) => share ?
      {whole: WHOLES[share](rows, column), most: greatest(rows.map(row => row[column]))} : {});
    const found = rows.filter(row => !wanted || String(row[columns[0][0]]).toLowerCase().includes(wanted));
    found.sort((a, b) => compare(sortValue(a[name]), sortValue(b[name]), down ? -1 : 1));
    const shown = all ? found : found.slice(0, FIRST_ROWS);
    body.replaceChildren(...shown.map(row => element('tr', {}, ...columns.map((column, index) => cellOf(row, column, sums[index])))));
    [...head.children].forEach((cell, index) => {
      if (index === by) cell.setAttribute('aria-sort', down ? 'descending' : 'ascending'); else cell.removeAttribute('aria-sort');
    });
    more.hidden = shown.length === found.length;
    more.textContent = `Show all ${number(found.length)}`;
  };
  section.append(element('div', {className: 'scroll'}, element('table', {}, element('thead', {}, head), body)), more);
  fill();
}

// --- the page ----------------------------------------------------------------------------------------------
// One that fails does not take the others with it.
function section(draw) {
  try { draw(); } catch (error) { console.error(error); }
}
for (const each of report.changes || []) each.difference_us = Math.abs(each.new_us - each.base_us);

section(stepBars);
const curves = report.curves || [];
if (curves.length && timed) {
  section(() => timeLine('utilization', 'GPU over time', curves, [
    {name: 'GPU busy', unit: '%', most: 100, points: binned('utilization_pct'), show: percent},
    {name: 'work that waits on the GPU', unit: 'queue length', points: binned('queue_length'), show: value => digits(value, 1)}]));
}
const sinceWindow = report.memory && !report.memory.before_known;
const memories = [['tensor_memory', 'tensors'], ['device_memory', sinceWindow ? 'device memory since the window began' : 'device memory']].filter(([key]) => curves.some(curve => curve[key].bytes.length > 1));
if (memories.length) {
  section(() => timeLine('memory', 'Memory over time', curves,
    memories.map(([key, name]) => ({name, unit: name, points: sampled(key), ticks: binaryTicks, show: bytes}))));
}
section(heatMap);
section(waitMap);
section(flameGraph);
for (const [key, title, columns] of TABLES) section(() => table(key, title, columns));

const theme = document.getElementById('theme');
theme.hidden = false;
theme.onclick = () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  for (const redraw of redraws) redraw();
};
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { for (const redraw of redraws) redraw(); });
document.body.dataset.ready = 'yes';
})();
