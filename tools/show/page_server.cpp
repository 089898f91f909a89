// SPDX-License-Identifier: Apache-2.0
#include "tools/show/page_server.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "tools/console.h"

namespace gpuprof {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr int kPatienceSeconds = 10;  // with one who has connected and says nothing

std::string secret() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    throw Failure("open: the kernel gives no random number");
  }
  return fmt::format("{:016x}", number);
}

void set_patience(tcp::socket& socket) {
  const timeval time{kPatienceSeconds, 0};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    ::setsockopt(socket.native_handle(), SOL_SOCKET, option, &time, sizeof time);
  }
}

class Session {
 public:
  Session(const ServedFile& file, std::string target, std::string host)
      : file_(file), target_(std::move(target)), host_(std::move(host)) {}

  // True when the file has been sent as a whole.
  bool answer(tcp::socket& socket) const {
    set_patience(socket);
    boost::beast::flat_buffer buffer;
    http::request<http::empty_body> request;
    error_code error;
    http::read(socket, buffer, request, error);
    if (error) return false;
    // The name by which it was reached: another would be that of a foreign page that points here.
    const auto host = request[http::field::host];
    const auto origin = request[http::field::origin];
    if ((host != host_ && host != "localhost" + host_.substr(host_.find(':'))) ||
        (!origin.empty() && origin != file_.origin)) {
      return refuse(socket, request, http::status::forbidden);
    }
    if (request.method() == http::verb::options) return allow(socket, request);
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      return refuse(socket, request, http::status::method_not_allowed);
    }
    if (request.target() != target_) return refuse(socket, request, http::status::not_found);
    return send(socket, request);
  }

 private:
  using Request = http::request<http::empty_body>;

  void set_head(http::fields& head) const {
    head.set(http::field::cache_control, "no-store");
    if (!file_.origin.empty()) {
      head.set(http::field::access_control_allow_origin, file_.origin);
      head.set(http::field::vary, "Origin");
    }
  }

  template <typename Response>
  bool write(tcp::socket& socket, Response& response) const {
    response.keep_alive(false);
    response.prepare_payload();
    error_code error;
    http::write(socket, response, error);
    socket.shutdown(tcp::socket::shutdown_send, error);
    return !error;
  }

  bool refuse(tcp::socket& socket, const Request& request, http::status status) const {
    http::response<http::empty_body> response(status, request.version());
    write(socket, response);
    return false;
  }

  // A browser asks first whether a page of the internet may read from this machine.
  bool allow(tcp::socket& socket, const Request& request) const {
    http::response<http::empty_body> response(http::status::no_content, request.version());
    set_head(response);
    response.set(http::field::access_control_allow_methods, "GET");
    response.set("Access-Control-Allow-Private-Network", "true");
    write(socket, response);
    return false;
  }

  bool send(tcp::socket& socket, const Request& request) const {
    error_code error;
    http::response<http::file_body> response(http::status::ok, request.version());
    response.body().open(file_.path.c_str(), boost::beast::file_mode::scan, error);
    if (error) throw Failure(fmt::format("{}: {}", file_.path, error.message()));
    set_head(response);
    response.set(http::field::content_type, file_.content_type);
    if (request.method() == http::verb::get) return write(socket, response);
    http::response<http::empty_body> head(http::status::ok, request.version());
    set_head(head);
    head.set(http::field::content_type, file_.content_type);
    write(socket, head);
    return false;
  }

  const ServedFile& file_;
  const std::string target_, host_;
};

}  // namespace

void serve_once(const ServedFile& file, uint16_t port,
                const std::function<void(const std::string& address, uint16_t port)>& ready) {
  boost::asio::io_context context(1);
  tcp::acceptor acceptor(context);
  error_code error;
  const tcp::endpoint place(boost::asio::ip::address_v4::loopback(), port);
  acceptor.open(place.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(place, error);
  if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  if (error) {
    throw Failure(
        fmt::format("open: 127.0.0.1:{} cannot be listened on: {}; another gpuprof open "
                    "may be waiting there",
                    port, error.message()));
  }
  port = acceptor.local_endpoint().port();
  const std::string host = fmt::format("127.0.0.1:{}", port);
  const std::string target = fmt::format("/{}/{}", secret(), file.name);
  const Session session(file, target, host);
  ready(fmt::format("http://{}{}", host, target), port);
  for (;;) {
    tcp::socket socket(context);
    acceptor.accept(socket, error);
    if (!error && session.answer(socket)) return;
  }
}

}  // namespace gpuprof
