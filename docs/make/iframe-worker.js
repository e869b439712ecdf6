// The search runs in a worker, which a page that is opened as a file may not start. There, a hidden frame does it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      (document.body || document.documentElement).append(frame);
      this.inside = frame.contentWindow;
      // What the script inside tells goes out; what it loads is loaded as the page would.
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)));
      this.load(url).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }

    load(url) {
      return new Promise((done) => {
        const script = this.inside.document.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onload = done;
        (this.inside.document.body || this.inside.document.documentElement).append(script);
      });
    }

    postMessage(data) {
      if (this.waiting) {
        this.waiting.push(data);
      } else {
        this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
      }
    }
  };
}
