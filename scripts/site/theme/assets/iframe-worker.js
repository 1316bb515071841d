/* Pages that are opened as files may start no workers; the search is one. So there a worker is a
   frame that is not shown, which runs the script and passes messages on. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inner = this.frame.contentWindow;
      const load = (source) =>
        new Promise((done, failed) => {
          const script = inner.document.createElement("script");
          script.src = new URL(source, location.href);
          script.onload = done;
          script.onerror = failed;
          inner.document.body.appendChild(script);
        });
      inner.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.send = (data) => inner.dispatchEvent(new MessageEvent("message", { data }));
      load(url).then(() => {
        const early = this.waiting;
        this.waiting = null;
        early.forEach(this.send);
      });
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.send(data);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
