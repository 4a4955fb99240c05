for (const film of document.querySelectorAll(".film")) {
  const frames = Array.from(film.children);
  if (frames.length < 2) continue;
  const bar = document.createElement("div"), slider = document.createElement("input");
  const button = document.createElement("button");
  let all = false;
  bar.className = "bar";
  Object.assign(slider, { type: "range", min: 1, max: frames.length, value: 1 });
  slider.setAttribute("aria-label", "step");
  const show = () => {
    frames.forEach((frame, k) => { frame.hidden = !all && k + 1 !== Number(slider.value); });
    film.classList.toggle("single", !all);
    button.textContent = all ? "one step" : "all steps";
    slider.disabled = all;
  };
  slider.addEventListener("input", show);
  button.type = "button";
  button.addEventListener("click", () => { all = !all; show(); });
  bar.append(slider, button);
  film.before(bar);
  show();
}
