// A small virtual DOM: only differences are changed, so focus, scroll position and selection stay. Texts are text nodes:
// nothing is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";
const AS_PROPERTIES = new Set(["value", "checked", "disabled", "selected", "points"]);

/** What an element should be. `props.key` names it among its siblings; `props.mount` is called once with the element;
 * `props.opaque` leaves its children to whoever mounted it. */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: children.flat(Infinity).filter(isShown) };
}

function isShown(child) {
  return child !== null && child !== undefined && child !== false && child !== true && child !== "";
}

/** Makes the children of an element what they should be. */
export function render(parent, ...children) {
  patchChildren(parent, children.flat(Infinity).filter(isShown), parent.namespaceURI === SVG);
  // only now are they in the document
  for (const node of made.splice(0)) node.unmount = node.shown.props.mount(node);
}

/** New elements with `mount`. */
const made = [];

function keyOf(node) {
  return node.props?.key ?? null;
}

function patchChildren(parent, wanted, inSvg) {
  const keyed = new Map();
  const plain = [];
  for (const node of parent.childNodes) {
    const key = node.shown ? keyOf(node.shown) : null;
    if (key === null) plain.push(node);
    else keyed.set(key, node);
  }
  let place = parent.firstChild;
  for (const one of wanted) {
    let node = take(keyed, plain, one);
    if (node === null) node = make(one, inSvg);
    else patch(node, one);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  for (const node of [...keyed.values(), ...plain]) remove(node);
}

function take(keyed, plain, one) {
  const key = typeof one === "object" ? keyOf(one) : null;
  if (key !== null) {
    const node = keyed.get(key);
    if (node === undefined || node.shown.tag !== one.tag) return null;
    keyed.delete(key);
    return node;
  }
  const at = plain.findIndex((node) => (typeof one === "object" ? node.shown?.tag === one.tag : node.nodeType === 3));
  return at < 0 ? null : plain.splice(at, 1)[0];
}

function remove(node) {
  if (node.nodeType === 1) {
    for (const inner of node.querySelectorAll("*")) inner.unmount?.();
    node.unmount?.();
  }
  node.remove();
}

function make(one, inSvg) {
  if (typeof one !== "object") return document.createTextNode(String(one));
  const isSvg = inSvg || one.tag === "svg";
  const node = isSvg ? document.createElementNS(SVG, one.tag) : document.createElement(one.tag);
  node.shown = { tag: one.tag, props: {} };
  patch(node, one);
  if (one.props.mount) made.push(node);
  return node;
}

function patch(node, one) {
  if (typeof one !== "object") {
    const text = String(one);
    if (node.data !== text) node.data = text;
    return;
  }
  const before = node.shown.props;
  node.shown = one;
  if (!one.props.opaque) patchChildren(node, one.children, node.namespaceURI === SVG);
  for (const name of Object.keys(before)) if (!(name in one.props)) setProp(node, name, null, before[name]);
  for (const [name, value] of Object.entries(one.props)) setProp(node, name, value, before[name]);
}

function setProp(node, name, value, before) {
  if (name === "key" || name === "mount" || name === "opaque") return;
  if (name.startsWith("on")) {
    node[name] = value ? (event) => void value(event) : null; // else a false that it returns would undo what was done
  } else if (name === "style") {
    for (const part of Object.keys(before ?? {})) if (!(part in (value ?? {}))) node.style.removeProperty(part);
    for (const [part, to] of Object.entries(value ?? {})) if (before?.[part] !== to) node.style.setProperty(part, to);
  } else if (AS_PROPERTIES.has(name)) {
    if (node[name] !== value) node[name] = value ?? "";
  } else if (value === before) {
    return;
  } else if (value === null || value === undefined || value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : String(value));
  }
}
